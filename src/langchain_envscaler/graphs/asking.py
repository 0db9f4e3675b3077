"""Questions that a server of the older protocol asks in the middle of a call, and whose call it is."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcp.client.session import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from langchain_envscaler.graphs.elicitation import LEGACY_KEY, Answers, QuestionHandler, answered, asked

__all__ = ["CallsUnderWay"]

_WAIT_SECONDS = 60.0
"""How long a question waits until its call is the only one, and then until its call is cancelled."""


@dataclass(slots=True)
class _Call:
    answers: deque[Answers]
    question: "asyncio.Future[ElicitRequestParams]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class CallsUnderWay:
    """The calls under way on one connection. It lives on one event loop.

    The older protocol does not say which call a question belongs to. Where several are under way, a question
    waits until the others have ended.
    """

    def __init__(self, server: str, handler: QuestionHandler | None) -> None:
        self._server = server
        self._handler = handler
        self._calls: list[_Call] = []
        self._at_most_one = asyncio.Event()
        self._at_most_one.set()

    async def ask(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Answer a server's question: the SDK's callback."""
        if self._handler is not None:
            return answered(await self._handler(self._server, asked(LEGACY_KEY, params)))
        call = await self._asking()
        if call is None:
            return ElicitResult(action="cancel")
        if call.answers:
            return answered(call.answers.popleft()["responses"].get(LEGACY_KEY))
        if not call.question.done():
            call.question.set_result(params)
        # An answer here would let the tool go on, while its call is being cancelled.
        await asyncio.sleep(_WAIT_SECONDS)
        return ElicitResult(action="cancel")

    @contextmanager
    def one(self, answers: Sequence[Answers]) -> "Iterator[asyncio.Future[ElicitRequestParams]]":
        """A call with the answers that are known already; gives the question that it asks beyond those."""
        call = _Call(deque(answers))
        self._calls.append(call)
        self._note()
        try:
            yield call.question
        finally:
            self._calls.remove(call)
            self._note()
            call.question.cancel()

    def _note(self) -> None:
        if len(self._calls) > 1:
            self._at_most_one.clear()
        else:
            self._at_most_one.set()

    async def _asking(self) -> _Call | None:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._at_most_one.wait()
        except TimeoutError:
            return None
        return self._calls[0] if self._calls else None
