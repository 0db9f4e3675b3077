"""An episode's tree of calls, as one process sees it: identities, chains, the head."""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_envscaler.environments.observation import CallRecord, Observation
from langchain_envscaler.environments.store import CallRow, EpisodeRow, Store
from langchain_envscaler.errors import InfrastructureError, UsageError

__all__ = ["Journal", "Node", "PlannedCall"]

_ATTEMPTS = 64


@dataclass(frozen=True, slots=True)
class Node:
    """A revision: where it stands in the tree, and whose state it has."""

    revision: int
    depth: int
    state_revision: int


START = Node(0, 0, 0)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that was not made before, and the revision on which it is to run."""

    parent: Node
    base: int
    position: int | None
    call_id: str
    name: str
    arguments: str
    """JSON."""


class Journal:
    """The journal of one episode. Not for use by several threads at once."""

    def __init__(self, store: Store, row: EpisodeRow) -> None:
        self._store = store
        self.row = row
        self._head: Node | None = None

    @property
    def head(self) -> Node:
        """The newest revision."""
        if self._head is None or self._head.revision != self.row.head:
            self._head = self._stored_node(self.row.head)
        return self._head

    def node(self, revision: int | None) -> Node:
        """A revision, the newest if None.

        Raises:
            UsageError: There is none of this number.
        """
        if revision is None or revision == self.row.head:
            return self.head
        if type(revision) is int and revision >= self.row.next_revision:
            self.refresh()  # another process may have made it
        if type(revision) is not int or not 0 <= revision < self.row.next_revision:
            raise UsageError(
                f"expected a revision from 0 to {self.row.next_revision - 1} of episode "
                f"{self.row.episode_id!r}, found {revision!r}"
            )
        return self._stored_node(revision)

    def _stored_node(self, revision: int) -> Node:
        if revision == 0:
            return START
        row = self._store.call(self.row, revision)
        if row is None:
            raise InfrastructureError(
                f"expected revision {revision} of episode {self.row.episode_id!r} in the store, found none"
            )
        return Node(row.revision, row.depth, row.state_revision)

    def refresh(self) -> None:
        """See what other processes did."""
        self.row = self._store.episode(self.row.episode_id)

    # ------------------------------------------------------------------ planning

    def plan(
        self, name: str, arguments: str, call_id: str | None, revision: int | None, position: int | None
    ) -> PlannedCall | Observation:
        """Where a call is to run; or the recorded result, where the same call was made before.

        Raises:
            UsageError: No such revision; or the identity is another call's.
        """
        base = self.node(revision)
        if call_id is not None and (recorded := self._recorded(call_id, revision)) is not None:
            return _replayed(recorded, name, arguments)
        parent = base
        if position and (chain := self._chain(base.revision, position)):
            parent = self.node(chain[-1].revision)
        return PlannedCall(
            parent=parent,
            base=base.revision,
            position=position,
            call_id=call_id if call_id is not None else secrets.token_hex(12),
            name=name,
            arguments=arguments,
        )

    def _recorded(self, call_id: str, revision: int | None) -> CallRow | None:
        """The recorded call of an identity; where no base is named, the newest of that id below the head."""
        rows = self._store.calls_with_id(self.row, call_id)
        if revision is not None:
            return next((row for row in rows if row.base == revision), None)
        if not rows:
            return None
        ancestors = {row.revision for row in self._store.path(self.row, self.row.head)}
        return next((row for row in reversed(rows) if row.revision in ancestors), None)

    def misses_positions_below(self, position: int, call_id: str | None, revision: int | None) -> bool:
        """Whether calls of the same message that go before this one have yet to come."""
        base = self.node(revision).revision
        if call_id is not None and self._recorded(call_id, revision) is not None:
            return False
        there = {row.position or 0 for row in self._chain(base, position)}
        return not there.issuperset(range(position))

    def _chain(self, base: int, position: int) -> Sequence[CallRow]:
        """The calls so far of the message that a call at this place belongs to.

        Those are the newest ones at the base since a first one; unless its place is taken among them: then
        its message is a new one, of which nothing came yet.
        """
        chain: list[CallRow] = []
        for row in self._store.calls_at_base(self.row, base):
            if not row.position or any(row.position == other.position for other in chain):
                chain = []
            chain.append(row)
        return [] if any(row.position == position for row in chain) else chain

    # ------------------------------------------------------------------ recording

    def commit(self, call: PlannedCall, result: bytes, state: bytes | None) -> int | None:
        """Record a call's result, and its state where that changed.

        Returns:
            The new revision; None if another process recorded a call meanwhile, and nothing was recorded.
        """
        revision, parent = self.row.next_revision, call.parent
        row = CallRow(
            revision=revision,
            parent=parent.revision,
            depth=parent.depth + 1,
            base=call.base,
            position=call.position,
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            result=result,
            state_revision=parent.state_revision if state is None else revision,
            created_at=time.time(),
        )
        committed = self._store.commit(self.row, row, state)
        if committed is None:
            self.refresh()
            return None
        self.row = committed
        self._head = Node(row.revision, row.depth, row.state_revision)
        return revision

    def move_head(self, revision: int) -> None:
        """Make another revision the newest one.

        Raises:
            InfrastructureError: Other processes were faster, again and again.
        """
        for _ in range(_ATTEMPTS):
            moved = self._store.move_head(self.row, revision)
            if moved is not None:
                self.row = moved
                return
            self.refresh()
        raise InfrastructureError(
            f"expected to move episode {self.row.episode_id!r} to revision {revision}, "
            f"found other processes faster {_ATTEMPTS} times; try again"
        )

    # ------------------------------------------------------------------ reading

    def history(self, node: Node) -> list[CallRecord]:
        """The calls from the start to a revision."""
        return [_record(row) for row in self._store.path(self.row, node.revision)]

    def state(self, node: Node) -> bytes:
        """A revision's state."""
        return self._store.state(self.row, node.state_revision)

    def initial_state(self) -> bytes:
        """The state at the start."""
        return self._store.state(self.row, 0)

    def saw(self, number: int, revision: int) -> bool:
        """Whether a revision of the episode of this number is one of this episode's too."""
        if number == self.row.number:
            return 0 <= revision < self.row.next_revision
        ancestors = {ancestor for ancestor, _ in self.row.ancestors}
        return number in ancestors and 0 <= revision < self.row.first_revision


def _replayed(row: CallRow, name: str, arguments: str) -> Observation:
    if row.name != name or json.loads(row.arguments) != json.loads(arguments):
        raise UsageError(
            f"expected call {row.call_id!r} to be of {row.name} with the arguments recorded at revision "
            f"{row.revision}, found another name or other arguments; give a new call an id of its own"
        )
    record = _record(row)
    return Observation(record.text, record.data, record.is_error, row.call_id, row.revision, replayed=True)


def _record(row: CallRow) -> CallRecord:
    result = json.loads(row.result.decode("utf-8", "surrogatepass"))
    return CallRecord(
        revision=row.revision,
        parent=row.parent,
        depth=row.depth,
        base=row.base,
        position=row.position,
        call_id=row.call_id,
        name=row.name,
        arguments=json.loads(row.arguments),
        text=result["text"],
        data=result["data"],
        is_error=result["is_error"],
        created_at=row.created_at,
    )
