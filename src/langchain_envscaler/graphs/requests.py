"""A call as it is sent to a server, and what may become of it beside a result."""

from dataclasses import dataclass
from typing import Any

from mcp.shared.dispatcher import ProgressFnT
from mcp_types import InputResponses

from langchain_envscaler.errors import EnvScalerError, InfrastructureError
from langchain_envscaler.graphs.elicitation import Answers

__all__ = [
    "CallLostError",
    "CallRequest",
    "CallTimeoutError",
    "ConsentMissingError",
    "ServerUnavailableError",
]


class ServerUnavailableError(InfrastructureError):
    """An MCP server cannot be reached; what was asked of it was not carried out."""


class CallLostError(InfrastructureError):
    """A connection ended in the middle of a call, so that nobody knows whether the call was carried out."""


class ConsentMissingError(EnvScalerError):
    """A call that was cancelled at a question is not sent again, since nobody consented to that."""


class CallTimeoutError(EnvScalerError):
    """A call took longer than its limit and was cancelled on the server."""


@dataclass(slots=True)
class CallRequest:
    """One `tools/call`."""

    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any] | None = None
    timeout: float | None = None
    """Seconds; None waits for ever."""
    progress: ProgressFnT | None = None
    repeatable: bool = False
    """Whether sending it twice has no other effect than sending it once."""
    input_responses: InputResponses | None = None
    request_state: str | None = None
    other_call_id: str | None = None
    """The identity to use where the first one belongs to another call already."""
    answers: tuple[Answers, ...] = ()
    """What a person has answered already to the questions that the call is going to ask, in order."""
