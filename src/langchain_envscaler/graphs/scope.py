"""What a graph tells a tool of the call that it is about to make."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CallScope", "call_scope", "current_scope"]


@dataclass(frozen=True, slots=True)
class CallScope:
    """What a graph knows of a call beyond its name and arguments."""

    revision: int | None = None
    """The revision of the episode's state that the call starts from."""
    position: int | None = None
    """The call's place among those of its message, counted from 0."""
    message_id: str | None = None
    """The id of the model's message, which tells calls of one id apart."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """More for the request's `_meta`."""
    on_progress: Callable[[dict[str, Any]], None] | None = None
    """Is told how far the call has come, in the context that the call was made in."""
    begin: Callable[[], bool] | None = None
    """Notes that the call is being made; tells whether it is made for the first time."""


_NO_SCOPE = CallScope()
_SCOPE: ContextVar[CallScope] = ContextVar("call_scope", default=_NO_SCOPE)


def current_scope() -> CallScope:
    """The scope that calls in this context are made with."""
    return _SCOPE.get()


@contextmanager
def call_scope(scope: CallScope) -> Iterator[None]:
    """Tool calls made within this context are made with the scope."""
    token = _SCOPE.set(scope)
    try:
        yield
    finally:
        _SCOPE.reset(token)
