"""The connections to a set of MCP servers, held as long as the toolset is, and their tools for LangChain."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from mcp import MCPError
from mcp.client.session import ClientSession

from langchain_envscaler.errors import EnvScalerError, InfrastructureError, UsageError
from langchain_envscaler.graphs.connection import Connection, ServerStatus
from langchain_envscaler.graphs.elicitation import QuestionHandler
from langchain_envscaler.graphs.loop import BackgroundLoop
from langchain_envscaler.graphs.naming import Prefix, matches, publish
from langchain_envscaler.graphs.offer import Offer
from langchain_envscaler.graphs.pool import ConnectionPool
from langchain_envscaler.graphs.refs import ToolRef
from langchain_envscaler.graphs.targets import Auth, ConnectMode, MCPSource, parse_targets
from langchain_envscaler.graphs.tools import MCPTool
from langchain_envscaler.mcp.tools import EPISODE_ID, REVISION

__all__ = ["MCPServerWarning", "MCPToolset"]

Result = TypeVar("Result")

_RETRY_SECONDS = 30.0
"""How long a server that could not be reached is left alone when tools are listed again."""


class MCPServerWarning(RuntimeWarning):
    """One of several MCP servers cannot be reached, and its tools are missing."""


class MCPToolset:
    """Connections to MCP servers and the tools that they offer.

    A connection is opened when it is first needed, held, and opened again when it was lost; each belongs to
    one task on an event loop in a thread that the toolset owns. So a toolset may be used from synchronous
    code and from any event loop, and opened in one task and closed in another. It is closed by `close`,
    `aclose`, the end of a `with` or an `async with`, or with the last reference to it.

    Example:
        ```python
        with MCPToolset("claude_desktop_config.json") as toolset:
            tools = toolset.get_tools()
        ```
    """

    def __init__(
        self,
        mcp: MCPSource | Iterable[MCPSource] | Mapping[str, Any],
        *,
        required: bool | Collection[str] = False,
        include: Collection[str] | None = None,
        exclude: Collection[str] = (),
        prefix: Prefix = "auto",
        timeout: float | None = 300.0,
        timeouts: Mapping[str, float | None] | None = None,
        connect_timeout: float = 30.0,
        repeat: bool | Collection[str] = False,
        auth: Auth | Mapping[str, Auth] | None = None,
        mode: ConnectMode = "auto",
        question_handler: QuestionHandler | None = None,
        loop: BackgroundLoop | None = None,
    ) -> None:
        """Make a toolset; nothing is connected yet.

        Tools are meant by patterns: a name or `server/name`, with `*` and `?`.

        Args:
            mcp: A client configuration as of Claude Desktop, Cursor or VS Code (a mapping or a file's path),
                a URL, an `Episode`, a server object of the MCP SDK, or several of these. A mapping of names
                to episodes and server objects names them.
            required: The servers that must be there, or True for all. Others that cannot be reached are named
                in an `MCPServerWarning`; if none can be reached that is an error in any case.
            include: The tools to offer; all if not given.
            exclude: Tools to leave out.
            prefix: When a tool's name gets its server's name before it. With "auto", where two servers share
                it: then both do. With "never" such a clash is refused.
            timeout: Seconds that a call may take, None for no limit. After that the server is told to stop.
            timeouts: The same for single tools; the first pattern that fits counts.
            connect_timeout: Seconds that a server may take to answer at first.
            repeat: The tools whose calls may be sent again after a lost connection although they are not
                marked as read-only or idempotent; True for all.
            auth: For HTTP servers, one for all or by server: a bearer token, "oauth" or an `httpx2.Auth`.
            mode: "legacy" speaks the older protocol with every server.
            question_handler: Answers a tool's questions while its call goes on. Without one they interrupt
                the run of the graph that the tool is called in.
            loop: A loop that several toolsets share; one of its own if not given.

        Raises:
            UsageError: No server, or two of one name, or a required one that is not among them.
            DataError: A configuration of no known form.
        """
        targets = parse_targets(mcp, auth=auth, timeout=max(timeout or 0.0, 300.0))
        self.server_names: tuple[str, ...] = tuple(target.name for target in targets)
        """The servers' names, in order."""
        self._required = frozenset(self._named(required))
        self._include = None if include is None else tuple(include)
        self._exclude = tuple(exclude)
        self._prefix: Prefix = prefix
        self._timeout = timeout
        self._timeouts = dict(timeouts or {})
        self._repeat: tuple[str, ...] = ("*",) if repeat is True else () if repeat is False else tuple(repeat)
        self._pool = ConnectionPool(
            targets,
            connect_timeout=connect_timeout,
            mode=mode,
            question_handler=question_handler,
            loop=loop,
        )
        self._offer: Offer | None = None
        self._tried: dict[str, float] = {}
        self._warned: set[str] = set()

    # Opening and closing

    def open(self) -> Self:
        """Connect to all servers and list their tools, instead of at the first use.

        Raises:
            InfrastructureError: A required server, or every server, cannot be reached.
        """
        self.get_tools()
        return self

    async def aopen(self) -> Self:
        """As `open`."""
        await self.aget_tools()
        return self

    def close(self) -> None:
        """Close all connections and end the server processes; a closed toolset cannot be used again."""
        self._pool.close()

    async def aclose(self) -> None:
        """As `close`."""
        await self._pool.aclose()

    @property
    def closed(self) -> bool:
        return self._pool.closed

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.aopen()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    # Tools

    def get_tools(self, *, refresh: bool = False) -> list[MCPTool]:
        """The tools of all servers that can be reached, as LangChain tools.

        Args:
            refresh: Ask the servers again instead of using what they listed last.

        Raises:
            InfrastructureError: A required server, or every server, cannot be reached.
            UsageError: Two tools of one name, with prefix "never"; or the toolset is closed.
        """
        return list(self.offer(refresh=refresh).tools)

    async def aget_tools(self, *, refresh: bool = False) -> list[MCPTool]:
        """As `get_tools`."""
        return list((await self.aoffer(refresh=refresh)).tools)

    def offer(self, *, refresh: bool = False) -> Offer:
        """The tools as `get_tools` gives them, with what follows from them."""
        if (known := self._known(refresh)) is not None:
            return known
        return self._pool.run(self._listed(refresh))

    async def aoffer(self, *, refresh: bool = False) -> Offer:
        """As `offer`."""
        if (known := self._known(refresh)) is not None:
            return known
        return await self._pool.arun(self._listed(refresh))

    @property
    def instructions(self) -> dict[str, str]:
        """What the connected servers tell a model about themselves, by server."""
        return {
            name: text
            for name, connection in self._pool.connections.items()
            if (text := connection.instructions)
        }

    @property
    def status(self) -> dict[str, ServerStatus]:
        """How each server is doing, as last seen."""
        return {name: connection.status for name, connection in self._pool.connections.items()}

    def check(self) -> dict[str, ServerStatus]:
        """Ask each server for a sign of life."""
        return self._pool.run(self._checked())

    async def acheck(self) -> dict[str, ServerStatus]:
        """As `check`."""
        return await self._pool.arun(self._checked())

    # What lies below tools

    def request(self, server: str, send: Callable[[ClientSession], Awaitable[Result]]) -> Result:
        """Use a server's connection for something else than a tool: a resource, a prompt, a custom request.

        Args:
            send: Called with the SDK's session, on the toolset's loop.

        Raises:
            NotFoundError: No server of that name.
            InfrastructureError: The server cannot be reached or the connection was lost.
            MCPError: The server answered with a protocol error.
        """
        return self._pool.run(self._pool[server].request(send))

    async def arequest(self, server: str, send: Callable[[ClientSession], Awaitable[Result]]) -> Result:
        """As `request`."""
        return await self._pool.arun(self._pool[server].request(send))

    def _named(self, required: bool | Collection[str]) -> Sequence[str]:
        if isinstance(required, bool):
            return self.server_names if required else ()
        names = [required] if isinstance(required, str) else list(required)
        if unknown := [name for name in names if name not in self.server_names]:
            raise UsageError(
                f"expected required servers among {', '.join(self.server_names)}, found {', '.join(unknown)}"
            )
        return names

    def _known(self, refresh: bool) -> Offer | None:
        # Asked for twice in every step of an agent, and not worth a way to the loop's thread and back.
        return None if refresh or self.closed else self._offer

    async def _listed(self, refresh: bool) -> Offer:
        if self._offer is None or refresh:
            errors = await asyncio.gather(*(self._list(one) for one in self._pool.connections.values()))
            self._complain([error for error in errors if error is not None])
            self._offer = Offer.of([MCPTool(ref, self._pool) for ref in self._published()])
        return self._offer

    async def _list(self, connection: Connection) -> tuple[str, Exception] | None:
        """List one server's tools; what went wrong is returned, so that it hides no other server."""
        now = asyncio.get_running_loop().time()
        failed = self._tried.get(connection.name)
        if failed is not None and now - failed < _RETRY_SECONDS and connection.name not in self._required:
            return None
        try:
            await connection.list_tools()
        except (EnvScalerError, MCPError) as error:
            connection.listing = None
            self._tried[connection.name] = asyncio.get_running_loop().time()
            return connection.name, error
        self._tried.pop(connection.name, None)
        self._warned.discard(connection.name)
        return None

    def _complain(self, errors: Sequence[tuple[str, Exception]]) -> None:
        for name, error in errors:
            if name in self._required:
                raise InfrastructureError(f"{error}; the server is required") from error
        if errors and all(connection.listing is None for connection in self._pool.connections.values()):
            raise InfrastructureError("; ".join(str(error) for _, error in errors)) from errors[0][1]
        for name, error in errors:
            if name not in self._warned:
                self._warned.add(name)
                warnings.warn(f"{error}; its tools are missing", MCPServerWarning, stacklevel=2)

    def _published(self) -> list[ToolRef]:
        offered = {
            (server, tool.name): tool
            for server, connection in self._pool.connections.items()
            if connection.listing is not None
            for tool in connection.listing.tools
            if self._offers(server, tool.name)
        }
        refs: list[ToolRef] = []
        for name, (server, tool_name) in publish(offered, self._prefix).items():
            listing = self._pool.connections[server].listing
            meta = listing.meta if listing is not None else {}
            refs.append(
                ToolRef(
                    name=name,
                    server=server,
                    tool=offered[server, tool_name],
                    timeout=self._limit(server, tool_name),
                    episode_id=meta.get(EPISODE_ID),
                    revision=meta.get(REVISION),
                    repeat=matches(self._repeat, server, tool_name),
                )
            )
        return refs

    def _offers(self, server: str, name: str) -> bool:
        if self._include is not None and not matches(self._include, server, name):
            return False
        return not matches(self._exclude, server, name)

    def _limit(self, server: str, name: str) -> float | None:
        for pattern, limit in self._timeouts.items():
            if matches((pattern,), server, name):
                return limit
        return self._timeout

    async def _checked(self) -> dict[str, ServerStatus]:
        statuses = await asyncio.gather(*(one.check() for one in self._pool.connections.values()))
        return dict(zip(self._pool.connections, statuses, strict=True))
