"""The HTTP server as a process: it listens, says where, and ends in order."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn
from mcp.server.auth.provider import TokenVerifier
from starlette.types import ASGIApp

from langchain_envscaler.errors import InfrastructureError, UsageError
from langchain_envscaler.mcp.app import MAX_BODY, create_app
from langchain_envscaler.mcp.auth import TokenTable
from langchain_envscaler.mcp.guard import is_loopback
from langchain_envscaler.mcp.oauth import ResourceServer
from langchain_envscaler.mcp.telemetry import log_to_stderr

if TYPE_CHECKING:
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["serve"]

_SHUTDOWN_SECONDS = 5
"""How long calls under way may take to end when the server is told to; streams end at once."""


def serve(
    service: "EpisodeService",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: str | Path | TokenVerifier | None = None,
    oauth: ResourceServer | None = None,
    public_url: str | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    control: bool = False,
    strict_arguments: bool = False,
    max_episodes_per_principal: int | None = None,
    max_body: int = MAX_BODY,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a service's environments and episodes over HTTP until the process is told to end.

    Args:
        service: The episodes; closed at the end.
        host: The address to listen on. One that other machines reach demands tokens.
        port: The port; 0 takes a free one.
        tokens: A file of tokens (see `TokenTable.load`), or a verifier of tokens.
        on_ready: Called with the server's address as soon as it listens.

    The other arguments are those of `create_app`.

    Raises:
        UsageError: The port is in use, the address is not this machine's, or tokens are missing.
    """
    if tokens is None and not is_loopback(host):
        raise UsageError(
            f"expected tokens to listen on {host}, which other machines reach, found none; "
            "give a file of tokens, or listen on 127.0.0.1"
        )
    verifier = TokenTable.load(tokens) if isinstance(tokens, (str, Path)) else tokens
    listener = _listen(host, port)
    own_host = f"[{host}]" if ":" in host else host
    hosts = [*allowed_hosts, own_host]
    if public_url:
        hosts.append(urlsplit(public_url).netloc)
    log_to_stderr()
    app = create_app(
        service,
        tokens=verifier,
        oauth=oauth,
        public_url=public_url,
        allowed_hosts=hosts,
        allowed_origins=allowed_origins,
        control=control,
        strict_arguments=strict_arguments,
        max_episodes_per_principal=max_episodes_per_principal,
        max_body=max_body,
    )
    url = f"http://{own_host}:{listener.getsockname()[1]}"
    asyncio.run(_run(service, app, listener, lambda: on_ready(url) if on_ready else None))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY on each connection. `socket.create_server` leaves it
    # out, and then a response in two parts waits for the client's delayed acknowledgement: 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(2048)
    except OverflowError:
        listener.close()
        raise UsageError(f"expected a port from 0 to 65535, found {port}") from None
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"expected port {port} of {host} to be free, found it in use; "
                "choose another, or 0 for any free one"
            ) from None
        raise UsageError(f"expected to listen on {host}:{port}, found: {error.strerror or error}") from None
    return listener


class _Server(uvicorn.Server):
    """Tells when it listens, and ends without dying of a signal, so that episodes are put away."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends the server at SIGINT and SIGTERM; uvicorn would send the signal once more afterwards."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        try:
            for number in numbers:
                loop.add_signal_handler(number, self.handle_exit, number, None)
        except NotImplementedError:  # Windows
            with super().capture_signals():
                yield
            return
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


async def _run(
    service: "EpisodeService", app: ASGIApp, listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    config = uvicorn.Config(
        app,
        # The application writes its own log: one line a request, and no addresses with what they may hold.
        log_config=None,
        access_log=False,
        server_header=False,
        # Behind a proxy the address comes from `public_url`, so that no header of a client decides it.
        proxy_headers=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    server = _Server(config, on_ready)
    try:
        await server.serve(sockets=[listener])
    finally:
        listener.close()
        await service.aclose()
    if not server.started:
        raise InfrastructureError(
            "expected the HTTP server to start, found that it did not; its log says why"
        )
