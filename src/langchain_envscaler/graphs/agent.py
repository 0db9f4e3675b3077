"""An agent around a chat model and any MCP tools."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ResponseFormat
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool
from langgraph._internal._constants import CONFIG_KEY_DURABILITY
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from langchain_envscaler.graphs.approvals import ApprovalMiddleware, Approve, Decisions
from langchain_envscaler.graphs.checkpoints import open_checkpointer
from langchain_envscaler.graphs.ledger import CallLedger
from langchain_envscaler.graphs.limits import Limits
from langchain_envscaler.graphs.middleware import ExactSchemasMiddleware, MCPToolsMiddleware
from langchain_envscaler.graphs.sources import OneToolset, ToolsetSource
from langchain_envscaler.graphs.targets import MCPSource
from langchain_envscaler.graphs.toolset import MCPToolset

__all__ = ["assemble", "create_tool_agent"]


def create_tool_agent(
    model: str | BaseChatModel,
    mcp: MCPToolset | MCPSource | Iterable[MCPSource] | Mapping[str, Any],
    *,
    system_prompt: str | SystemMessage | None = None,
    checkpointer: Checkpointer | str | Path = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    response_format: ResponseFormat[Any] | type[Any] | dict[str, Any] | None = None,
    context_schema: type[Any] | None = None,
    store: BaseStore | None = None,
    instructions: bool = True,
    approve: Approve | None = None,
    decisions: Decisions = ("approve", "edit", "reject", "respond"),
    max_steps: int | None = 100,
    max_tokens: int | None = None,
    max_errors: int | None = 10,
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make an agent that acts through MCP tools.

    The graph is made at once; servers are connected when it runs, for `invoke` and `ainvoke` alike, and
    their tools are listed when a turn begins. It runs with durability "sync", so that no crash loses a
    model's message, unless another is asked for.

    Args:
        model: A chat model that calls tools, or its name as for `init_chat_model`.
        mcp: The MCP servers: a client configuration as of Claude Desktop, Cursor or VS Code (a mapping or a
            file's path), a URL, an `Episode`, a server object, several of these; or an `MCPToolset`, for more
            choice and to close it by hand.
        system_prompt: What the model is told first.
        checkpointer: Where threads are kept: a checkpointer of LangGraph, or an address for
            `open_checkpointer` (a file's path or `postgresql://...`).
        tools: Tools beside the servers'.
        middleware: More middleware; it sees the servers' tools as LangChain tools.
        response_format: The form of a structured answer, as for `create_agent`.
        context_schema: The form of a run's context, as for `create_agent`.
        store: A store for long-term memory.
        instructions: Add what the servers say about themselves to the system prompt.
        approve: The tools that run only with a person's consent: "destructive" (as MCP supposes it of every
            tool that does not say otherwise), "changes" (all that are not read-only), "all", or patterns of
            names. The run is interrupted before such calls; it needs a checkpointer, and goes on with
            `Command(resume={"decisions": [...]})`.
        decisions: What the person may decide.
        max_steps: Model calls in one turn, None for no limit. Then the turn ends with a message saying so.
        max_tokens: The same for the tokens of a turn.
        max_errors: The same for failed tool calls in a row.
        name: The graph's name, for its use in another.

    Raises:
        UsageError: No server, or two of one name.
        DataError: A configuration of no known form.
    """
    return assemble(
        model,
        mcp if isinstance(mcp, MCPToolset) else MCPToolset(mcp),
        system_prompt=system_prompt,
        checkpointer=checkpointer,
        tools=tools,
        middleware=middleware,
        response_format=response_format,
        context_schema=context_schema,
        store=store,
        instructions=instructions,
        approve=approve,
        decisions=decisions,
        max_steps=max_steps,
        max_tokens=max_tokens,
        max_errors=max_errors,
        name=name,
    )


def assemble(
    model: str | BaseChatModel,
    toolsets: ToolsetSource | MCPToolset,
    *,
    system_prompt: str | SystemMessage | None = None,
    checkpointer: Checkpointer | str | Path = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    outer: Sequence[AgentMiddleware[Any, Any]] = (),
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    response_format: ResponseFormat[Any] | type[Any] | dict[str, Any] | None = None,
    context_schema: type[Any] | None = None,
    store: BaseStore | None = None,
    instructions: bool = True,
    approve: Approve | None = None,
    decisions: Decisions = ("approve", "edit", "reject", "respond"),
    max_steps: int | None = None,
    max_tokens: int | None = None,
    max_errors: int | None = None,
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Put an agent together out of a toolset, or of what tells which toolset a thread has.

    Args:
        outer: Middleware around all other.

    The other arguments are those of `create_tool_agent`.
    """
    if isinstance(checkpointer, (str, Path)):
        checkpointer = open_checkpointer(checkpointer)
    source = OneToolset(toolsets) if isinstance(toolsets, MCPToolset) else toolsets
    ledger = CallLedger()
    graph = create_agent(
        model,
        list(tools),
        system_prompt=system_prompt,
        middleware=[
            *outer,
            *([ApprovalMiddleware(source, ledger, approve, decisions)] if approve else []),
            MCPToolsMiddleware(
                source,
                ledger,
                limits=Limits(max_steps=max_steps, max_tokens=max_tokens, max_errors=max_errors),
                instructions=instructions,
                exact_schemas=not middleware,
            ),
            *middleware,
            *([ExactSchemasMiddleware()] if middleware else []),
        ],
        response_format=response_format,
        context_schema=context_schema,
        checkpointer=checkpointer,
        store=store,
        name=name,
    )
    if not checkpointer:
        return graph
    # With LangGraph's own default a kill inside a tool can lose the model's message; a resumed run would then
    # sample another call, and the effect of the first would happen beside that of the second.
    return graph.with_config(configurable={CONFIG_KEY_DURABILITY: "sync"})
