"""A tool call that a graph is about to make: which tool it means, and from where the thread stands."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from langchain_envscaler.graphs.ledger import CallKey, CallLedger
from langchain_envscaler.graphs.offer import Offer
from langchain_envscaler.graphs.scope import CallScope
from langchain_envscaler.graphs.state import EpisodePlace, places_of
from langchain_envscaler.graphs.tools import MCPTool
from langchain_envscaler.mcp.tools import EPISODE_ID, REVISION

__all__ = ["PendingCall"]


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call of a model's message, with what the thread's state says of it."""

    request: ToolCallRequest
    tool: MCPTool | None
    """The tool that is meant, None if there is none of that name."""
    known: tuple[str, ...]
    """The names of all tools."""
    message_id: str
    previous: CallKey | None
    """The call of the same message and episode that comes before it."""
    scope: CallScope

    @classmethod
    def of(cls, request: ToolCallRequest, offer: Offer, ledger: CallLedger) -> "PendingCall":
        """Find out about a call."""
        tool = offer.by_name.get(request.tool_call["name"])
        message = _calling_message(request)
        message_id = (message.id if message is not None else None) or ""
        chain = _chain(request, message, offer) if tool is not None and tool.ref.episode_id else []
        position = chain.index(request.tool_call["id"]) if request.tool_call["id"] in chain else 0
        return cls(
            request=request if tool is None else request.override(tool=tool),
            tool=tool,
            known=(*offer.by_name, *(one.name for one in request.runtime.tools)),
            message_id=message_id,
            previous=(message_id, chain[position - 1]) if position else None,
            scope=replace(
                _scope(request, tool, position if len(chain) > 1 else None, message_id),
                begin=partial(ledger.begin, (message_id, request.tool_call["id"] or "")),
            ),
        )

    @property
    def key(self) -> CallKey:
        return self.message_id, self.request.tool_call["id"] or ""

    def unknown(self) -> ToolMessage:
        """What the model reads where there is no tool of that name."""
        call = self.request.tool_call
        return ToolMessage(
            content=f"Error: there is no tool of that name. The tools are: {', '.join(self.known)}.",
            name=call["name"],
            tool_call_id=call["id"] or "",
            status="error",
        )

    def placed(self, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
        """The result together with where it brought the episode."""
        if self.tool is None or not isinstance(result, ToolMessage) or not isinstance(result.artifact, dict):
            return result
        meta = result.artifact.get("meta") or {}
        if EPISODE_ID not in meta or REVISION not in meta:
            return result
        place = EpisodePlace(episode_id=meta[EPISODE_ID], revision=meta[REVISION])
        return Command(update={"messages": [result], "episodes": {self.tool.ref.server: place}})


def _calling_message(request: ToolCallRequest) -> AIMessage | None:
    return next((one for one in reversed(request.state["messages"]) if isinstance(one, AIMessage)), None)


def _chain(request: ToolCallRequest, message: AIMessage | None, offer: Offer) -> list[str]:
    """The ids of the message's calls that go to the same server and have no result yet, in their order."""
    if message is None:
        return []
    server = offer.servers[request.tool_call["name"]]
    answered = {one.tool_call_id for one in request.state["messages"] if isinstance(one, ToolMessage)}
    return [
        call["id"]
        for call in message.tool_calls
        if call["id"] is not None and call["id"] not in answered and offer.servers.get(call["name"]) == server
    ]


def _scope(
    request: ToolCallRequest, tool: MCPTool | None, position: int | None, message_id: str
) -> CallScope:
    runtime = request.runtime

    def on_progress(report: dict[str, Any]) -> None:
        runtime.stream_writer(report)
        runtime.emit_output_delta(report)

    if tool is None or tool.ref.episode_id is None:
        return CallScope(on_progress=on_progress)
    place = places_of(request.state).get(tool.ref.server)
    return CallScope(
        revision=place["revision"] if place is not None else tool.ref.revision,
        position=position,
        message_id=message_id,
        on_progress=on_progress,
    )
