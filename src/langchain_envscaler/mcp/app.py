"""The HTTP server: all environments of a catalog, an address for each episode, and what an operator needs."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server import Server, ServerRequestContext
from mcp.server.auth.provider import TokenVerifier
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from langchain_envscaler.errors import EnvScalerError
from langchain_envscaler.mcp.auth import BearerAuthentication
from langchain_envscaler.mcp.control import StartArguments
from langchain_envscaler.mcp.desk import EpisodeDesk
from langchain_envscaler.mcp.endpoint import McpEndpoint, http_request
from langchain_envscaler.mcp.episodes_api import EpisodesApi
from langchain_envscaler.mcp.guard import LOOPBACK_HOSTS, HostGuard, SizeLimit
from langchain_envscaler.mcp.lobby import Lobby
from langchain_envscaler.mcp.oauth import ResourceServer
from langchain_envscaler.mcp.operations import (
    Call,
    NoQuery,
    Shape,
    openapi,
    operation,
    operations_of,
    routes,
)
from langchain_envscaler.mcp.problems import (
    HttpProblem,
    respond_to_failure,
    respond_to_http_exception,
    respond_to_problem,
)
from langchain_envscaler.mcp.records import EpisodeRecord, Health
from langchain_envscaler.mcp.server import create_server
from langchain_envscaler.mcp.telemetry import Metrics, RequestTelemetry, call_telemetry

if TYPE_CHECKING:
    from langchain_envscaler.environments.episode import Episode
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["create_app"]

MAX_BODY = 4 * 1024 * 1024
"""The largest request body that is taken, in bytes, unless the server is told another."""

_EPISODE = "envscaler.episode"
_SESSION_IDLE_SECONDS = 600.0
_MAX_SESSIONS = 10_000
_PUBLIC_PATHS = ("/healthz", "/openapi.json", "/.well-known/oauth-protected-resource")
_DESCRIPTION = (
    "Environments and episodes. Each episode has an MCP endpoint at /episodes/{episode_id}/mcp whose tools "
    "are the environment's; /mcp is the lobby, an MCP endpoint that lists environments and starts episodes."
)


def create_app(
    service: "EpisodeService",
    *,
    tokens: TokenVerifier | None = None,
    oauth: ResourceServer | None = None,
    public_url: str | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    control: bool = False,
    strict_arguments: bool = False,
    max_episodes_per_principal: int | None = None,
    max_body: int = MAX_BODY,
    access_log: bool = True,
) -> Starlette:
    """The application that serves a service's environments and episodes over HTTP.

    Args:
        service: The episodes; it stays open when the application ends.
        tokens: Verifies bearer tokens: a `TokenTable`, or a verifier of an outside authorization server.
            Without it nobody is asked, and every episode is everybody's.
        oauth: Where the tokens come from, to be published as protected-resource metadata.
        public_url: The address that clients see, where a proxy stands before the server.
        allowed_hosts: Host headers that are served beside those of the loopback addresses.
        allowed_origins: Origins of web pages that may use the server.
        control: Offer the control tools (start, reset, check) in the MCP endpoints.
        strict_arguments: Refuse tool arguments that do not fit the tool's schema.
        max_episodes_per_principal: How many episodes one principal may have open.
        max_body: The largest request body, in bytes.
        access_log: Write one log line for each request.
    """
    metrics = Metrics()
    metrics.watch("envscaler_episodes", "Episodes that the store keeps", service.count)
    metrics.watch("envscaler_episodes_awake", "Episodes that have a process", lambda: len(service.awake()))
    desk = EpisodeDesk(service, metrics, public_url=public_url, max_per_principal=max_episodes_per_principal)
    lobby = Lobby(service.catalog, desk, control=control)
    episode_mcp = _mcp(_episode_server(desk, metrics, control, strict_arguments), max_body)
    lobby_mcp = _mcp(lobby.server(), max_body)
    operations = [
        *operations_of(_OperatorApi(service, metrics)),
        *operations_of(EpisodesApi(service.catalog, desk)),
    ]
    document = openapi(
        operations,
        version=version("langchain-envscaler"),
        description=_DESCRIPTION,
        authenticated=tokens is not None,
    )

    async def show_document(_: Request) -> Response:
        return JSONResponse(document)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with episode_mcp.run(), lobby_mcp.run():
            yield

    served: list[BaseRoute] = [
        Route("/episodes/{episode_id}/mcp", _EpisodeEndpoint(desk, episode_mcp)),
        Route("/mcp", lobby_mcp),
        *routes(operations),
        Route("/openapi.json", show_document, methods=["GET"]),
        *(oauth.routes() if oauth else ()),
    ]
    app = Starlette(
        routes=served,
        middleware=[
            Middleware(RequestTelemetry, metrics, access_log=access_log),
            Middleware(HostGuard, [*LOOPBACK_HOSTS, *allowed_hosts], allowed_origins),
            Middleware(SizeLimit, max_body),
            *([_authentication(tokens, oauth)] if tokens else ()),
        ],
        exception_handlers={
            HttpProblem: respond_to_problem,
            EnvScalerError: respond_to_problem,
            HTTPException: respond_to_http_exception,
            Exception: respond_to_failure,
        },
        lifespan=lifespan,
    )
    # A client that got an address wrong by a slash is told so, not sent elsewhere with its body and token.
    app.router.redirect_slashes = False
    app.state.lobby = lobby
    return app


class _EpisodeEndpoint:
    """The MCP endpoint of the episode that the address names."""

    def __init__(self, desk: EpisodeDesk, endpoint: McpEndpoint) -> None:
        self._desk = desk
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Found once, before MCP: what is not there, or not the caller's, is a plain 404.
        caller = self._desk.caller(Request(scope))
        scope[_EPISODE] = await self._desk.get(caller, scope["path_params"]["episode_id"])
        await self._endpoint(scope, receive, send)


def _mcp(server: Server[Any], max_body: int) -> McpEndpoint:
    return McpEndpoint(
        server, max_body=max_body, idle_seconds=_SESSION_IDLE_SECONDS, max_sessions=_MAX_SESSIONS
    )


def _episode_server(
    desk: EpisodeDesk, metrics: Metrics, control: bool, strict_arguments: bool
) -> Server[Any]:
    """The one MCP server of all episodes: the address says which of them a request is about."""

    async def resolve(ctx: ServerRequestContext[Any, Any]) -> "Episode":
        return _episode_of(ctx)

    async def start(ctx: ServerRequestContext[Any, Any], arguments: StartArguments) -> EpisodeRecord:
        caller = desk.caller(http_request(ctx))
        env_id = arguments.env_id or _episode_of(ctx).spec.env_id
        return desk.record(caller, await desk.start(caller, env_id, arguments.task_id, seed=arguments.seed))

    server = create_server(
        resolve, control=control, start=start if control else None, strict_arguments=strict_arguments
    )
    server.middleware.append(call_telemetry(metrics, _episode_of))
    return server


def _episode_of(ctx: ServerRequestContext[Any, Any]) -> "Episode":
    """The episode at whose address a request came in."""
    episode: Episode = http_request(ctx).scope[_EPISODE]
    return episode


def _authentication(tokens: TokenVerifier, oauth: ResourceServer | None) -> Middleware:
    return Middleware(
        BearerAuthentication,
        tokens,
        resource_url=oauth.resource_url if oauth else None,
        resource_metadata_url=oauth.metadata_url if oauth else None,
        required_scopes=oauth.scopes if oauth else (),
        public_paths=_PUBLIC_PATHS,
    )


class _OperatorApi:
    """What an operator asks: is it up, what does it do."""

    def __init__(self, service: "EpisodeService", metrics: Metrics) -> None:
        self._service = service
        self._metrics = metrics

    @operation(Shape("GET", "/healthz", Health, public=True))
    async def healthz(self, _: Call[NoQuery, None]) -> Health:
        """Whether the server is up, and how well environments are confined."""
        report = await asyncio.to_thread(lambda: self._service.isolation)
        return Health(
            version=version("langchain-envscaler"), isolation=report.level, isolation_detail=report.detail
        )

    @operation(Shape("GET", "/metrics", "text/plain"))
    async def metrics(self, _: Call[NoQuery, None]) -> Response:
        """Prometheus metrics."""
        # In a thread, since the gauges ask the store.
        text = await asyncio.to_thread(generate_latest, self._metrics.registry)
        return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})
