"""The lobby: an MCP server through which a client without REST finds environments and plays episodes.

Its tools list environments and scenarios and start episodes. An episode's own endpoint, whose address is in
the answer, has the environment's tools themselves; a client that knows only this one address reaches them
through `list_tools` and `call_tool`.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel, Field, JsonValue

from langchain_envscaler.mcp.changes import Changes, ChangingServer
from langchain_envscaler.mcp.control import evaluate
from langchain_envscaler.mcp.desk import Caller, EpisodeDesk
from langchain_envscaler.mcp.endpoint import http_request
from langchain_envscaler.mcp.host_tools import HostTool, HostTools, ToolArguments
from langchain_envscaler.mcp.numbers import Integral, Seed
from langchain_envscaler.mcp.paging import page
from langchain_envscaler.mcp.records import (
    EnvironmentPage,
    EnvironmentRecord,
    EpisodeRecord,
    EvaluationRecord,
    ScenarioPage,
)
from langchain_envscaler.mcp.tools import error_result, observation_result

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.episode import Episode

__all__ = ["Lobby"]

Context = ServerRequestContext[Any, Any]

_INSTRUCTIONS = (
    "Simulated environments to practise tool use in. Choose one with list_environments and a task with "
    "list_scenarios, start it with start_episode, then use its tools: at the address in the answer, or here "
    "through list_tools and call_tool."
)


_ENVIRONMENTS = "envscaler://environments/"
_RESOURCES_PER_PAGE = 100


class _PageArguments(ToolArguments):
    cursor: Annotated[int, Field(ge=0, description="The next_cursor of the page before"), Integral] = 0
    limit: Annotated[int, Field(ge=1, le=100), Integral] = 25


class _ScenarioArguments(_PageArguments):
    env_id: Annotated[str, Field(description="The environment, from list_environments")]


class _StartArguments(ToolArguments):
    env_id: Annotated[str, Field(description="The environment, from list_environments")]
    task_id: Annotated[str | None, Field(description="The scenario, from list_scenarios")] = None
    seed: Annotated[Seed | None, Field(description="Makes randomness and the clock repeatable")] = None


class _EpisodeArguments(ToolArguments):
    episode_id: Annotated[str, Field(description="The episode, from start_episode")]


class _CallArguments(_EpisodeArguments):
    name: Annotated[str, Field(description="The tool, from list_tools")]
    arguments: Annotated[
        dict[str, JsonValue], Field(default_factory=dict, description="The tool's arguments")
    ]
    call_id: Annotated[
        str | None, Field(description="The call's identity: the same one again gives the recorded result")
    ] = None


class ToolList(BaseModel):
    """The tools of an episode, as OpenAI function schemas."""

    tools: list[dict[str, Any]]


class Ended(BaseModel):
    """An episode that is no more."""

    episode_id: str
    ended: bool = True


class Lobby:
    """The lobby of a server's episodes."""

    def __init__(self, catalog: "Catalog", desk: EpisodeDesk, *, control: bool) -> None:
        self._catalog = catalog
        self._desk = desk
        self._changes = Changes()
        check = HostTool("check", "Run the task's checks on an episode.", _EpisodeArguments, self._check)
        self._tools = HostTools(
            [
                HostTool(
                    "list_environments", "List the environments.", _PageArguments, self._list_environments
                ),
                HostTool(
                    "list_scenarios",
                    "List the tasks of an environment.",
                    _ScenarioArguments,
                    self._list_scenarios,
                ),
                HostTool(
                    "start_episode",
                    "Start an episode: a fresh copy of an environment, with a task if one is given.",
                    _StartArguments,
                    self._start,
                ),
                HostTool("list_tools", "List the tools of an episode.", _EpisodeArguments, self._list_tools),
                HostTool("call_tool", "Call a tool of an episode.", _CallArguments, self._call),
                HostTool("end_episode", "Delete an episode.", _EpisodeArguments, self._end),
                *([check] if control else []),
            ]
        )

    def server(self) -> Server[Any]:
        """The MCP server of the lobby; its resources are the environments."""
        server = ChangingServer(
            "langchain-envscaler-lobby",
            version=version("langchain-envscaler"),
            instructions=_INSTRUCTIONS,
            get_tool_input_schema=lambda name: None,
            on_list_tools=self._listed,
            on_call_tool=self._called,
            on_list_resources=self._listed_resources,
            on_read_resource=self._read_resource,
        )
        self._changes.serve(server)
        return server

    async def environments_changed(self) -> None:
        """Tell the clients that environments came or went, after the catalog was changed."""
        await self._changes.resources_changed()

    async def _listed(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools.definitions())

    async def _called(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools.names)
            return error_result(f"Unknown tool '{params.name}'. The lobby's tools are: {known}.")
        return await tool.call(ctx, params.arguments)

    async def _listed_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        start = params.cursor if params and params.cursor else "0"
        if not start.isdecimal() or len(start) > 18:
            raise MCPError(INVALID_PARAMS, "expected the cursor of the page before, found another")
        specs, next_cursor = page(list(self._catalog.environments.values()), int(start), _RESOURCES_PER_PAGE)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"{_ENVIRONMENTS}{quote(spec.env_id, safe='')}",
                    name=spec.env_id,
                    description=spec.environment_summary,
                    mime_type="application/json",
                )
                for spec in specs
            ],
            next_cursor=None if next_cursor is None else str(next_cursor),
        )

    async def _read_resource(
        self, _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        spec = None
        if params.uri.startswith(_ENVIRONMENTS):
            spec = self._catalog.environments.get(unquote(params.uri.removeprefix(_ENVIRONMENTS)))
        if spec is None:
            raise MCPError(INVALID_PARAMS, f"Resource not found: {params.uri}", data={"uri": params.uri})
        text = EnvironmentRecord.of(spec).model_dump_json(indent=2)
        content = types.TextResourceContents(uri=params.uri, text=text, mime_type="application/json")
        return types.ReadResourceResult(contents=[content])

    async def _list_environments(self, _: Context, arguments: _PageArguments) -> EnvironmentPage:
        return EnvironmentPage.of(self._catalog, arguments.cursor, arguments.limit)

    async def _list_scenarios(self, _: Context, arguments: _ScenarioArguments) -> ScenarioPage:
        return ScenarioPage.of(self._catalog, arguments.env_id, arguments.cursor, arguments.limit)

    async def _start(self, ctx: Context, arguments: _StartArguments) -> EpisodeRecord:
        caller = self._caller(ctx)
        episode = await self._desk.start(caller, arguments.env_id, arguments.task_id, seed=arguments.seed)
        return self._desk.record(caller, episode)

    async def _list_tools(self, ctx: Context, arguments: _EpisodeArguments) -> ToolList:
        return ToolList(tools=(await self._episode(ctx, arguments)).spec.tools)

    async def _call(self, ctx: Context, arguments: _CallArguments) -> types.CallToolResult:
        episode = await self._episode(ctx, arguments)
        observation = await episode.acall(arguments.name, arguments.arguments, call_id=arguments.call_id)
        return observation_result(episode.episode_id, observation)

    async def _check(self, ctx: Context, arguments: _EpisodeArguments) -> EvaluationRecord:
        return await evaluate(await self._episode(ctx, arguments), None)

    async def _end(self, ctx: Context, arguments: _EpisodeArguments) -> Ended:
        await self._desk.delete(self._caller(ctx), arguments.episode_id)
        return Ended(episode_id=arguments.episode_id)

    async def _episode(self, ctx: Context, arguments: _EpisodeArguments) -> "Episode":
        return await self._desk.get(self._caller(ctx), arguments.episode_id)

    def _caller(self, ctx: Context) -> Caller:
        return self._desk.caller(http_request(ctx))
