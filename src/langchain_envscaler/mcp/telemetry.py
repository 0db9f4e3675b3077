"""What an operator sees of the HTTP server: metrics, one log line a request, a span a request.

No line, label or attribute holds a header, an argument, a result or a query: tokens and an environment's data
stay out of them.
"""

import itertools
import json
import logging
import secrets
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from opentelemetry import trace
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langchain_envscaler.mcp.auth import principal_of
from langchain_envscaler.mcp.endpoint import http_request

if TYPE_CHECKING:
    from langchain_envscaler.environments.episode import Episode

__all__ = ["JsonFormatter", "Metrics", "RequestTelemetry", "log_to_stderr"]

_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_access = logging.getLogger("langchain_envscaler.access")
_CALL = "envscaler.call"
# An id of a process and a number cost less than a random id a request, and are as unique.
_PROCESS = secrets.token_hex(8)
_numbers = itertools.count(1)
_tracer = trace.get_tracer("langchain_envscaler")


class Metrics:
    """The Prometheus metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "envscaler_http_requests", "HTTP requests", ("method", "route", "status"), registry=self.registry
        )
        self.request_seconds = Histogram(
            "envscaler_http_request_seconds",
            "Time from a request to the end of its response",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.calls = Counter(
            "envscaler_tool_calls", "Tool calls by outcome", ("env_id", "outcome"), registry=self.registry
        )
        self.call_seconds = Histogram(
            "envscaler_tool_call_seconds",
            "Time that a tool call took",
            ("env_id",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.started = Counter(
            "envscaler_episodes_started", "Episodes started", ("env_id",), registry=self.registry
        )
        self.refused = Counter(
            "envscaler_episodes_refused", "Episodes refused because of a limit", registry=self.registry
        )

    def watch(self, name: str, documentation: str, value: Callable[[], float]) -> None:
        """Add a gauge that is read whenever the metrics are."""
        Gauge(name, documentation, registry=self.registry).set_function(value)


EpisodeOf: TypeAlias = "Callable[[ServerRequestContext[Any, Any]], Episode]"
"""Tells which episode an MCP request is about."""


def call_telemetry(metrics: Metrics, episode_of: EpisodeOf) -> ServerMiddleware[Any]:
    """MCP middleware that counts and times tool calls, and notes them for the log."""

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        episode = episode_of(ctx)
        env_id = episode.spec.env_id
        outcome = "failed"
        started = time.perf_counter()
        try:
            result = await call_next(ctx)
            outcome = _outcome(result)
            return result
        finally:
            seconds = time.perf_counter() - started
            metrics.calls.labels(env_id, outcome).inc()
            metrics.call_seconds.labels(env_id).observe(seconds)
            # The request's line in the log says what it called: one line costs less than two.
            http_request(ctx).scope[_CALL] = {
                "env_id": env_id,
                # A model made it up, so it can be anything.
                "tool": str((ctx.params or {}).get("name"))[:100],
                "outcome": outcome,
            }

    return middleware


def _outcome(result: HandlerResult) -> str:
    if not isinstance(result, dict):
        return "ok"
    if (result.get("_meta") or {}).get("envscaler/replayed"):
        return "replayed"
    return "error" if result.get("isError") else "ok"


class RequestTelemetry:
    """ASGI middleware, the outermost: counts, times, logs and traces each request."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, access_log: bool = True) -> None:
        self._app = app
        self._metrics = metrics
        self._access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in _METHODS else "other"
        status = 500
        request_id = f"{_PROCESS}-{next(_numbers)}"
        started = time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {
                    **message,
                    "headers": [*message["headers"], (b"x-request-id", request_id.encode())],
                }
            await send(message)

        with _tracer.start_as_current_span(method, kind=trace.SpanKind.SERVER) as span:
            try:
                await self._app(scope, receive, noted)
            finally:
                seconds = time.perf_counter() - started
                route = _route(scope)
                span.update_name(f"{method} {route}")
                span.set_attribute("http.request.method", method)
                span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", status)
                self._metrics.requests.labels(method, route, str(status)).inc()
                self._metrics.request_seconds.labels(method, route).observe(seconds)
                if self._access_log:
                    self._log(scope, request_id, route, status, seconds)

    def _log(self, scope: Scope, request_id: str, route: str, status: int, seconds: float) -> None:
        if _access.isEnabledFor(logging.INFO):
            _access.info(
                "request",
                extra={
                    "fields": {
                        "request_id": request_id,
                        "method": scope["method"],
                        "route": route,
                        **{key: str(value)[:100] for key, value in scope.get("path_params", {}).items()},
                        "status": status,
                        "ms": round(seconds * 1000, 2),
                        "principal": principal_of(scope),
                        **scope.get(_CALL, {}),
                    }
                },
            )


def _route(scope: Scope) -> str:
    """The template of the address: a label must not grow with the number of episodes."""
    route = scope.get("route")
    return getattr(route, "path", None) or "unknown"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Write this package's log, and the warnings of the libraries, to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("langchain_envscaler").setLevel(level)
