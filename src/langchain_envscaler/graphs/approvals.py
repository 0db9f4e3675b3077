"""A person's consent before certain tools run: by the tool's name, or by what its annotations say."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Literal, TypeAlias

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, InterruptOnConfig
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from langchain_envscaler.graphs.ledger import CallLedger
from langchain_envscaler.graphs.naming import matches
from langchain_envscaler.graphs.sources import ToolsetSource
from langchain_envscaler.graphs.tools import MCPTool

__all__ = ["ApprovalMiddleware", "Approve", "Decisions"]

Approve: TypeAlias = Literal["destructive", "changes", "all"] | Collection[str]
"""Which tools want consent: those that may destroy something, those that may change something, all, or those
that patterns name (`name` or `server/name`, with `*` and `?`)."""

Decisions: TypeAlias = Sequence[Literal["approve", "edit", "reject", "respond"]]
"""What a person may decide."""


class ApprovalMiddleware(AgentMiddleware[Any, Any, Any]):
    """Interrupts the run before calls that want consent, with LangChain's own requests and decisions.

    All of a message's calls are decided on before any of them runs, so that they stay in their order.
    Annotations are a server's own word: a server that is not trusted is to be gated by name.
    """

    state_schema = HumanInTheLoopMiddleware.state_schema

    def __init__(
        self,
        toolsets: ToolsetSource,
        ledger: CallLedger,
        approve: Approve,
        decisions: Decisions = ("approve", "edit", "reject", "respond"),
    ) -> None:
        super().__init__()
        self._toolsets = toolsets
        self._ledger = ledger
        self._approve = approve
        self._decisions = list(decisions)
        # What edits a person made are kept in the state, so that any instance applies them.
        self._edits = HumanInTheLoopMiddleware({})

    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        gate = self._gate(self._toolsets.of(state).get_tools())
        return self._decided(state, gate.after_model(state, runtime))

    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        gate = self._gate(await (await self._toolsets.aof(state)).aget_tools())
        return self._decided(state, await gate.aafter_model(state, runtime))

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        return self._edits.wrap_tool_call(request, handler)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        return await self._edits.awrap_tool_call(request, handler)

    def _gate(self, tools: Sequence[MCPTool]) -> HumanInTheLoopMiddleware[Any, Any, Any]:
        gated = {tool.name: self._request(tool) for tool in tools if self._wants_consent(tool)}
        return HumanInTheLoopMiddleware(dict(gated))

    def _request(self, tool: MCPTool) -> InterruptOnConfig:
        about = f"Tool {tool.ref.tool.name} of server {tool.ref.server}"
        return InterruptOnConfig(allowed_decisions=list(self._decisions), description=f"{about} wants to run")

    def _wants_consent(self, tool: MCPTool) -> bool:
        if self._approve == "all":
            return True
        if self._approve == "changes":
            return not tool.ref.read_only
        if self._approve == "destructive":
            return tool.ref.destructive
        patterns = [self._approve] if isinstance(self._approve, str) else self._approve
        return matches((*patterns,), tool.ref.server, tool.ref.tool.name) or tool.name in patterns

    def _decided(self, state: Any, update: dict[str, Any] | None) -> dict[str, Any] | None:
        # An approval may come long after the model's turn, and in another process: only now may the calls be
        # made, so nobody can have made them before.
        last = next((one for one in reversed(state["messages"]) if isinstance(one, AIMessage)), None)
        if last is not None:
            self._ledger.give([last])
        return update
