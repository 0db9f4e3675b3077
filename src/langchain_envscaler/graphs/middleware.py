"""The tools of an MCP toolset in an agent: found when it runs, called from where the thread stands."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import RemoveMessage, SystemMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from langchain_envscaler.errors import UsageError
from langchain_envscaler.graphs.calls import PendingCall
from langchain_envscaler.graphs.ledger import CallLedger
from langchain_envscaler.graphs.limits import Limits, counted, turn_so_far
from langchain_envscaler.graphs.offer import Offer
from langchain_envscaler.graphs.origins import afirst_places, first_places
from langchain_envscaler.graphs.repair import close_open_calls
from langchain_envscaler.graphs.scope import call_scope
from langchain_envscaler.graphs.sources import ToolsetSource
from langchain_envscaler.graphs.state import EpisodePlace, ToolAgentState, Turn, places_of, starts_turn
from langchain_envscaler.graphs.tools import MCPTool
from langchain_envscaler.graphs.toolset import MCPToolset
from langchain_envscaler.graphs.tracing import model_span, note_answer

__all__ = ["ExactSchemasMiddleware", "MCPToolsMiddleware"]


class MCPToolsMiddleware(AgentMiddleware[ToolAgentState, Any, Any]):
    """Gives an agent the tools of a toolset.

    Tools are listed when a turn begins. Calls to an episode's tools are made from the revision that the
    thread stands at, with the call's own id, so that the world follows when the thread is rewound or forked,
    and a call that is made again after a crash finds its recorded result. Calls to other servers, which
    cannot tell a repeated call from a new one, are not repeated unless their tools allow it.
    """

    state_schema = ToolAgentState

    def __init__(
        self,
        toolsets: ToolsetSource,
        ledger: CallLedger | None = None,
        *,
        limits: Limits | None = None,
        instructions: bool = True,
        exact_schemas: bool = True,
    ) -> None:
        """Give an agent the tools of the toolset that its thread has.

        All of it is one middleware, since each that wraps a model call costs more than the work done here.

        Args:
            ledger: Where calls are noted, if other middleware notes some too.
            limits: What a turn may have.
            instructions: Add what the servers say about themselves to the system prompt.
            exact_schemas: Hand the model the servers' schemas as they are. Where other middleware is to see
                tools instead, `ExactSchemasMiddleware` does that further inside.
        """
        super().__init__()
        self._toolsets = toolsets
        self._ledger = ledger or CallLedger()
        self._limits = limits or Limits()
        self._instructions = instructions
        self._exact_schemas = exact_schemas

    # The model

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        turn = turn_so_far(request.state)
        if (ending := self._limits.ending(turn, request.messages)) is not None:
            return ModelResponse(result=[ending])
        toolset = self._toolsets.of(request.state)
        offer = toolset.offer(refresh=starts_turn(request.state["messages"]))
        prepared = self._prepared(request, toolset, offer)
        places = _new_places(request, offer)
        if places:
            places |= _known_of(places, first_places())
        with model_span(request.model) as span:
            response = handler(prepared)
            note_answer(span, response.result)
        return self._finished(request, prepared, turn, places, response)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        turn = turn_so_far(request.state)
        if (ending := self._limits.ending(turn, request.messages)) is not None:
            return ModelResponse(result=[ending])
        toolset = await self._toolsets.aof(request.state)
        offer = await toolset.aoffer(refresh=starts_turn(request.state["messages"]))
        prepared = self._prepared(request, toolset, offer)
        places = _new_places(request, offer)
        if places:
            places |= _known_of(places, await afirst_places())
        with model_span(request.model) as span:
            response = await handler(prepared)
            note_answer(span, response.result)
        return self._finished(request, prepared, turn, places, response)

    def _prepared(self, request: ModelRequest[Any], toolset: MCPToolset, offer: Offer) -> ModelRequest[Any]:
        _refuse_other_episodes(places_of(request.state), offer)
        offered = offer.functions if self._exact_schemas else offer.tools
        changes: dict[str, Any] = {"tools": [*request.tools, *offered]}
        if (repaired := close_open_calls(request.messages)) is not None:
            changes["messages"] = repaired
        if self._instructions and (instructions := toolset.instructions):
            changes["system_message"] = _with_instructions(request.system_message, instructions)
        return request.override(**changes)

    def _finished(
        self,
        request: ModelRequest[Any],
        prepared: ModelRequest[Any],
        turn: Turn,
        places: dict[str, EpisodePlace],
        response: ModelResponse[Any],
    ) -> ExtendedModelResponse[Any]:
        update: dict[str, Any] = {"turn": counted(turn, response.result)}
        for message in response.result:
            # Calls are told apart by their message's id, which the state would give it later.
            message.id = message.id or str(uuid.uuid4())
        self._ledger.give(response.result)
        if prepared.messages is not request.messages:
            repaired = prepared.messages
            update["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *repaired, *response.result]
        if places:
            update["episodes"] = places
        return ExtendedModelResponse(model_response=response, command=Command(update=update))

    # Tools

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        if request.tool is not None:
            return handler(request)
        call = PendingCall.of(request, self._toolsets.of(request.state).offer(), self._ledger)
        if call.tool is None:
            return call.unknown()
        with self._ledger.making(call.key):
            if (earlier := self._earlier(call)) is not None:
                earlier.result()
            with call_scope(call.scope):
                return call.placed(handler(call.request))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        if request.tool is not None:
            return await handler(request)
        toolset = await self._toolsets.aof(request.state)
        call = PendingCall.of(request, await toolset.aoffer(), self._ledger)
        if call.tool is None:
            return call.unknown()
        with self._ledger.making(call.key):
            if (earlier := self._earlier(call)) is not None:
                await asyncio.shield(asyncio.wrap_future(earlier))
            with call_scope(call.scope):
                return call.placed(await handler(call.request))

    def _earlier(self, call: PendingCall) -> "Future[None] | None":
        """The end of the call before this one in its chain, where this process makes that one too.

        The server orders a chain as well, but it cannot tell a message's first call, still on its way, from
        that of another message that once began at the same revision.
        """
        return self._ledger.ending(call.previous) if call.previous is not None else None


class ExactSchemasMiddleware(AgentMiddleware[Any, Any, Any]):
    """Hands MCP tools to the model with their servers' schemas as they are.

    It stands innermost, so that other middleware sees tools and not dictionaries.
    """

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(request.override(tools=[_exact(tool) for tool in request.tools]))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(request.override(tools=[_exact(tool) for tool in request.tools]))


def _exact(tool: Any) -> Any:
    return tool.function if isinstance(tool, MCPTool) else tool


def _new_places(request: ModelRequest[Any], offer: Offer) -> dict[str, EpisodePlace]:
    """The places that the thread's state does not hold yet."""
    known = places_of(request.state)
    return {server: place for server, place in offer.places.items() if server not in known}


def _known_of(
    places: Mapping[str, EpisodePlace], known: Mapping[str, EpisodePlace]
) -> dict[str, EpisodePlace]:
    """Those of the known places that are in the same episodes."""
    return {
        server: known[server]
        for server, place in places.items()
        if server in known and known[server]["episode_id"] == place["episode_id"]
    }


def _refuse_other_episodes(places: dict[str, EpisodePlace], offer: Offer) -> None:
    for server, served in offer.places.items():
        known = places.get(server)
        if known is not None and known["episode_id"] != served["episode_id"]:
            raise UsageError(
                f"expected server {server!r} to serve the thread's episode {known['episode_id']}, found "
                f"{served['episode_id']}; start the server with that episode, or begin a new thread"
            )


def _with_instructions(system: SystemMessage | None, instructions: dict[str, str]) -> SystemMessage:
    parts: list[str] = [system.text] if system is not None and system.text else []
    parts += [
        text if len(instructions) == 1 else f"About the tools of {server}:\n{text}"
        for server, text in instructions.items()
    ]
    return SystemMessage(content="\n\n".join(parts))
