"""An MCP server whose tools are exactly one episode's.

Nothing is kept on the connection: which episode a request is about is told by the server's resolver, so that
clients of both protocol eras, with held connections and with one connection per call, find the same state.
"""

import asyncio
from collections.abc import Awaitable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult

from langchain_envscaler.environments.metadata import EnvironmentSpec
from langchain_envscaler.mcp import resources
from langchain_envscaler.mcp.changes import Changes, ChangingServer
from langchain_envscaler.mcp.control import EpisodeResolver, EvaluateParams, Starter, control_tools, evaluate
from langchain_envscaler.mcp.faults import translated
from langchain_envscaler.mcp.tools import (
    EPISODE_ID,
    REVISION,
    CallMeta,
    ToolSet,
    error_result,
    observation_result,
)

if TYPE_CHECKING:
    from langchain_envscaler.environments.episode import Episode

__all__ = ["create_server"]

Context = ServerRequestContext[Any, Any]
Result = TypeVar("Result")

PROGRESS_INTERVAL = 2.0
"""Seconds between two words of progress to a client that asked for them."""


def create_server(
    episode: "Episode | EpisodeResolver",
    *,
    control: bool = False,
    start: Starter | None = None,
    strict_arguments: bool = False,
    changes: Changes | None = None,
) -> Server[Any]:
    """A low-level MCP server for one episode, or for the one that each request is about.

    Args:
        episode: The episode, or a function that finds it for a request.
        control: Offer the tools `reset` and `check` (and `start`, where a starter is given) and the request
            `envscaler/evaluate`.
        start: Starts another episode for a client; only with `control`.
        strict_arguments: Refuse a call whose arguments do not fit the tool's schema. Without, wrong types go
            to the environment, which answers as it did in training.
        changes: Tells clients when the lists change; None where they never do.
    """
    resolve = episode if callable(episode) else _always(episode)
    handlers = _Handlers(resolve, control=control, start=start, strict_arguments=strict_arguments)
    server = ChangingServer(
        "langchain-envscaler",
        version=version("langchain-envscaler"),
        # No tool of an environment declares header parameters, so the SDK need not list the tools to look.
        get_tool_input_schema=lambda name: None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    server.middleware.append(handlers.as_the_environment_says)
    if control:
        server.add_request_handler("envscaler/evaluate", EvaluateParams, handlers.evaluate)
    if changes is not None:
        changes.serve(server)
    return server


def _always(episode: "Episode") -> EpisodeResolver:
    async def resolve(_: Context) -> "Episode":
        return episode

    return resolve


class _Handlers:
    """The request handlers of one server."""

    def __init__(
        self, resolve: EpisodeResolver, *, control: bool, start: Starter | None, strict_arguments: bool
    ) -> None:
        self._resolve = resolve
        self._control = control_tools(resolve, start) if control else None
        self._strict_arguments = strict_arguments
        self._tool_sets: dict[str, tuple[EnvironmentSpec, ToolSet]] = {}

    async def list_tools(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        episode = await self._episode(ctx)
        await translated(episode.arefresh())  # calls are made at the revision that is told here
        tools = list(self._tool_set(episode).tools)
        if self._control is not None:
            tools += self._control.definitions(self._tool_set(episode).names)
        return types.ListToolsResult(
            tools=tools, _meta={EPISODE_ID: episode.episode_id, REVISION: episode.revision}
        )

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        episode = await self._episode(ctx)
        tool_set = self._tool_set(episode)
        if self._control is not None and (tool := self._control.get(params.name, tool_set.names)):
            return await tool.call(ctx, params.arguments)
        meta = CallMeta.of(ctx.meta)
        arguments = params.arguments or {}
        if self._strict_arguments and (problem := tool_set.type_errors(params.name, arguments)):
            return error_result(problem, episode.episode_id, episode.revision, meta.call_id)
        # What the model got wrong is an observation; what its client got wrong is a protocol error.
        call = translated(
            episode.acall(
                params.name,
                arguments,
                call_id=meta.call_id,
                revision=meta.revision,
                position=meta.position,
            )
        )
        return observation_result(episode.episode_id, await _with_progress(ctx, params.name, call))

    async def list_resources(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return resources.resources(await self._episode(ctx))

    async def list_resource_templates(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return resources.resource_templates()

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await translated(resources.read_resource(await self._episode(ctx), params.uri))

    async def list_prompts(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return resources.prompts()

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return resources.prompt(await self._episode(ctx), params.name, params.arguments)

    async def evaluate(self, ctx: Context, params: EvaluateParams) -> HandlerResult:
        return await translated(evaluate(await self._episode(ctx), params.revision))

    async def as_the_environment_says(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware for what the SDK cannot say by itself: the instructions, and the schemas as they are."""
        result = await call_next(ctx)
        if not isinstance(result, dict):
            return result
        if ctx.method in ("initialize", "server/discover"):
            return {**result, "instructions": resources.instructions((await self._episode(ctx)).spec)}
        if ctx.method == "tools/list":
            return {
                **result,
                "tools": self._untouched(result["tools"], self._tool_set(await self._episode(ctx))),
            }
        return result

    @staticmethod
    def _untouched(listed: list[dict[str, Any]], tool_set: ToolSet) -> list[dict[str, Any]]:
        """The tools with their schemas' keys in the order of the environment's file.

        The SDK puts keys into an order of its own, and a model is prompted with the schema's text.
        """
        schemas = tool_set.input_schemas
        return [
            {**tool, "inputSchema": schemas[tool["name"]]} if tool["name"] in schemas else tool
            for tool in listed
        ]

    async def _episode(self, ctx: Context) -> "Episode":
        return await translated(self._resolve(ctx))

    def _tool_set(self, episode: "Episode") -> ToolSet:
        spec = episode.spec
        known = self._tool_sets.get(spec.env_id)
        if known is not None and known[0] is spec:
            return known[1]
        tool_set = ToolSet.of(spec)
        self._tool_sets[spec.env_id] = (spec, tool_set)
        return tool_set


async def _with_progress(ctx: Context, name: str, work: Awaitable[Result]) -> Result:
    """Await the work; a client that asked for progress is told every while that it goes on."""
    reporter = _ProgressReporter(ctx, name)
    try:
        return await work
    finally:
        await reporter.stop()


class _ProgressReporter:
    """Reports, from a while after its making until it is stopped, how long a tool has been running.

    Most calls end long before the first report, so all that they pay for is a timer.
    """

    def __init__(self, ctx: Context, name: str) -> None:
        self._ctx = ctx
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(PROGRESS_INTERVAL, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._report())

    async def _report(self) -> None:
        elapsed = PROGRESS_INTERVAL
        while True:
            # Without effect where the client did not ask.
            await self._ctx.session.report_progress(
                elapsed, message=f"{self._name} has been running for {elapsed:.0f} s"
            )
            await asyncio.sleep(PROGRESS_INTERVAL)
            elapsed += PROGRESS_INTERVAL

    async def stop(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
