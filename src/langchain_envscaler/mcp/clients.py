"""Client configurations: which MCP servers an application uses, in the forms that its users already have.

Read are `mcpServers` (Claude Desktop, `.mcp.json`, Cursor and their kin), VS Code's `servers`, a bare mapping
of names to entries, plain URLs, and files of any of these. Keys that only matter to another client are left
aside; a server that such a client has switched off is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from langchain_envscaler.errors import DataError, UsageError
from langchain_envscaler.mcp.config_text import decode_config, read_config
from langchain_envscaler.mcp.config_values import Variables, read_env_file

__all__ = ["ClientConfig", "HttpServerEntry", "ServerEntry", "StdioServerEntry", "parse_clients"]


class StdioServerEntry(BaseModel):
    """A server that the client starts as a process and speaks to over its standard streams."""

    model_config = ConfigDict(frozen=True)

    transport: Literal["stdio"] = "stdio"
    name: str
    command: str
    args: tuple[str, ...] = ()
    # Environment variables and headers carry secrets, so no repr (and so no log line) shows them.
    env: Annotated[Mapping[str, str], Field(repr=False)] = {}
    """Variables that the process gets beyond the client's small default environment."""
    cwd: Path | None = None
    """The process's working folder, absolute; None is the client's own."""


class HttpServerEntry(BaseModel):
    """A server that is reached at a URL."""

    model_config = ConfigDict(frozen=True)

    transport: Literal["http", "sse"] = "http"
    """`http` is streamable HTTP, `sse` the older transport of the same kind."""
    name: str
    url: str
    headers: Annotated[Mapping[str, str], Field(repr=False)] = {}


ServerEntry: TypeAlias = StdioServerEntry | HttpServerEntry

ClientConfig: TypeAlias = str | Path | Mapping[str, Any] | ServerEntry
"""One source of server entries: a URL, a file's path, a mapping, or an entry."""

_TRANSPORTS: Mapping[str, Literal["stdio", "http", "sse"]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_WRAPPERS = ("mcpServers", "servers")
_URL_KEYS = ("url", "serverUrl", "httpUrl")


def parse_clients(
    source: ClientConfig | Iterable[ClientConfig],
    *,
    environ: Mapping[str, str] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> list[ServerEntry]:
    """Read the server entries of one or several client configurations, in their order.

    Args:
        source: A URL, the path of a configuration file, a configuration as a mapping, an entry, or several
            of these.
        environ: Where `${NAME}` and `${env:NAME}` are looked up; the process's environment if not given.
        inputs: Answers to VS Code's `${input:id}`, by id.

    Raises:
        NotFoundError: A file that is not there.
        DataError: A configuration that does not have the form of any client, or that names a variable,
            an input or a file that is not there.
        UsageError: Two servers of one name.
    """
    sources = [source] if isinstance(source, (str, Mapping, Path, BaseModel)) else list(source)
    entries: list[ServerEntry] = []
    for one in sources:
        entries += _entries(one, environ, inputs or {}, taken={entry.name for entry in entries})
    _refuse_duplicates(entries)
    return entries


def _entries(
    source: ClientConfig, environ: Mapping[str, str] | None, inputs: Mapping[str, str], taken: set[str]
) -> list[ServerEntry]:
    if isinstance(source, (StdioServerEntry, HttpServerEntry)):
        return [source]
    if isinstance(source, Mapping):
        return _from_mapping(source, Variables.of(environ, inputs), "the MCP configuration")
    if isinstance(source, str) and source.lower().startswith(("http://", "https://")):
        return [_from_url(source, taken)]
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return _from_mapping(decode_config(source), Variables.of(environ, inputs), "the MCP configuration")
    if isinstance(source, (str, Path)):
        path = Path(source).expanduser()
        return _from_mapping(read_config(path), Variables.of(environ, inputs, path.absolute()), str(path))
    raise DataError(
        f"expected a URL, a file's path or a mapping as MCP configuration, found {type(source).__name__}; "
        'give for example {"mcpServers": {"name": {"command": ..., "args": [...]}}}'
    )


def _from_url(url: str, taken: set[str]) -> HttpServerEntry:
    """An entry for a bare URL, named by its host and port."""
    host = urlsplit(_checked_url(url, "the MCP server's URL")).netloc.rpartition("@")[2]
    base = "".join(char if char.isalnum() else "_" for char in host).strip("_")
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return HttpServerEntry(name=name, url=url, transport=_transport_of_url(url))


def _from_mapping(config: Any, variables: Variables, where: str) -> list[ServerEntry]:
    servers = _servers(config, where)
    variables = variables.with_input_defaults(config.get("inputs"))
    return [
        _entry(str(name), fields, variables, f"server {name!r} in {where}")
        for name, fields in servers.items()
        if not _switched_off(fields)
    ]


def _servers(config: Any, where: str) -> Mapping[str, Any]:
    """The mapping of names to entries, taken out of whatever a client wraps around it."""
    if isinstance(config, Mapping):
        # VS Code's settings file holds the same object one level down.
        inner = config.get("mcp")
        if isinstance(inner, Mapping) and any(key in inner for key in _WRAPPERS):
            config = inner
        present = [key for key in _WRAPPERS if key in config]
        if len(present) > 1:
            raise DataError(f"expected one of mcpServers and servers in {where}, found both; keep one")
        servers = config[present[0]] if present else config
        if isinstance(servers, Mapping) and (present or _is_bare_mapping(servers)):
            return servers
        if present:
            raise DataError(
                f"expected an object of names to servers under {present[0]} in {where}, "
                f"found {type(servers).__name__}"
            )
    raise DataError(
        f'expected {{"mcpServers": {{name: {{"command" or "url": ...}}}}}} (or "servers") in {where}, '
        f"found {_shape(config)}; add the wrapping key, or give the servers by name"
    )


def _is_bare_mapping(servers: Mapping[str, Any]) -> bool:
    return bool(servers) and all(
        isinstance(fields, Mapping) and ("command" in fields or any(key in fields for key in _URL_KEYS))
        for fields in servers.values()
    )


def _switched_off(fields: Any) -> bool:
    return isinstance(fields, Mapping) and (fields.get("disabled") is True or fields.get("enabled") is False)


def _entry(name: str, fields: Any, variables: Variables, where: str) -> ServerEntry:
    if not name.strip():
        raise DataError(f"expected a name for each server, found an empty one: {where}")
    if not isinstance(fields, Mapping):
        raise DataError(f"expected an object for {where}, found {type(fields).__name__}")
    url_keys = [key for key in _URL_KEYS if key in fields]
    if len(url_keys) + ("command" in fields) != 1:
        raise DataError(
            f'expected "command" (a process) or "url" (an address) for {where}, '
            f"found {_keys(fields)}; give exactly one of them"
        )
    transport = _declared_transport(fields, where)
    if "command" in fields:
        if transport not in (None, "stdio"):
            raise DataError(f'expected "url" for {where}, whose type is {transport}, found "command"')
        return _stdio_entry(name, fields, variables, where)
    if transport == "stdio":
        raise DataError(f'expected "command" for {where}, whose type is stdio, found "{url_keys[0]}"')
    return _http_entry(name, fields, url_keys[0], transport, variables, where)


def _stdio_entry(name: str, fields: Mapping[str, Any], variables: Variables, where: str) -> StdioServerEntry:
    command = variables.expand(_text(fields["command"], f'"command" of {where}'), where)
    if not command.strip():
        raise DataError(f'expected the name or the path of a program as "command" of {where}, found nothing')
    args = fields.get("args") or []
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise DataError(f'expected a list of texts as "args" of {where}, found {type(args).__name__}')
    env: dict[str, str] = {}
    if fields.get("envFile") is not None:
        file = variables.expand(_text(fields["envFile"], f'"envFile" of {where}'), where)
        env |= read_env_file(variables.path(file), where)
    env |= _texts(fields.get("env"), f'"env" of {where}', variables, where)
    cwd = fields.get("cwd")
    return StdioServerEntry(
        name=name,
        command=str(Path(command).expanduser()) if command.startswith("~") else command,
        args=tuple(variables.expand(_text(arg, f'"args" of {where}'), where) for arg in args),
        env=env,
        cwd=None if cwd is None else variables.path(variables.expand(_text(cwd, f'"cwd" of {where}'), where)),
    )


def _http_entry(
    name: str,
    fields: Mapping[str, Any],
    url_key: str,
    transport: Literal["http", "sse"] | None,
    variables: Variables,
    where: str,
) -> HttpServerEntry:
    url = variables.expand(_text(fields[url_key], f'"{url_key}" of {where}'), where)
    url = _checked_url(url, f'"{url_key}" of {where}')
    headers = _texts(fields.get("headers"), f'"headers" of {where}', variables, where)
    for header, value in headers.items():
        if not header or not header.isascii() or any(char in header + value for char in "\r\n\0"):
            raise DataError(f'expected one line of text per header in "headers" of {where}, check {header!r}')
    return HttpServerEntry(name=name, url=url, transport=transport or _transport_of_url(url), headers=headers)


def _declared_transport(fields: Mapping[str, Any], where: str) -> Literal["stdio", "http", "sse"] | None:
    declared = fields.get("type", fields.get("transport"))
    if declared is None:
        return None
    found = _TRANSPORTS.get(declared.lower()) if isinstance(declared, str) else None
    if found is None:
        raise DataError(f"expected the type stdio, http or sse for {where}, found {declared!r}")
    return found


def _transport_of_url(url: str) -> Literal["http", "sse"]:
    return "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http"


def _checked_url(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    # The URL itself may carry a token, so the message does not repeat it.
    if not valid:
        raise DataError(f"expected an http:// or https:// address as {where}, found something else")
    return url


def _texts(value: Any, what: str, variables: Variables, where: str) -> dict[str, str]:
    """A mapping of names to texts; null leaves a name out, a number is written as text."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError(f"expected an object of names to texts as {what}, found {type(value).__name__}")
    return {
        str(name): variables.expand(_text(text, f"{name!r} in {what}"), where)
        for name, text in value.items()
        if text is not None
    }


def _text(value: Any, what: str) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise DataError(f"expected text as {what}, found {type(value).__name__}; put it in quotes")
    return value


def _keys(fields: Mapping[str, Any]) -> str:
    return "the keys " + ", ".join(map(str, fields)) if fields else "no key"


def _shape(config: Any) -> str:
    return _keys(config) if isinstance(config, Mapping) else type(config).__name__


def _refuse_duplicates(entries: Sequence[ServerEntry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise UsageError(
                f"expected a name of its own for each MCP server, found {entry.name!r} twice; rename one"
            )
        seen.add(entry.name)
