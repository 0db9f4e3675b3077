"""Environments in the configuration of desktop clients: which file is whose, and what is written there.

A client starts the server in a folder of its own choice with next to no environment variables, so every path
in an entry is absolute. It also starts a new process whenever it likes, so an entry names a store and an
episode: the next process goes on where the last one was.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

from langchain_envscaler.errors import DataError, InfrastructureError, UsageError
from langchain_envscaler.mcp.client_kinds import Client
from langchain_envscaler.mcp.config_edit import remove_entry, set_entry
from langchain_envscaler.mcp.config_text import decode_config

__all__ = ["Change", "Client", "config_path", "episode_of", "install", "server_entry", "uninstall"]

_BACKUP_SUFFIX = ".envscaler-backup"
_MAX_NAME_LENGTH = 64


@dataclass(frozen=True)
class Change:
    """What became of a client's configuration file."""

    config: Path
    changed: bool
    """False: the file already said so, and was left alone."""
    backup: Path | None
    """The file as it was before; None where nothing changed or there was no file."""


def config_path(client: Client, *, platform: str, environ: Mapping[str, str]) -> PurePath:
    """The file in which a client keeps the servers of its user, whatever the folder it works in.

    Args:
        client: The application.
        platform: `sys.platform` of the system it runs on.
        environ: Its environment variables.

    Raises:
        UsageError: The variables do not say where the user's files are.
    """
    windows = platform == "win32"
    flavour: Callable[[str], PurePath] = PureWindowsPath if windows else PurePosixPath
    home = environ.get("USERPROFILE" if windows else "HOME")

    def in_home(*parts: str) -> PurePath:
        if not home:
            raise UsageError(
                f"expected the user's folder in {'USERPROFILE' if windows else 'HOME'}, found nothing; "
                "name the file with --config PATH"
            )
        return flavour(home).joinpath(*parts)

    if client is Client.cursor:
        return in_home(".cursor", "mcp.json")
    if client is Client.claude_code:
        folder = environ.get("CLAUDE_CONFIG_DIR")
        return flavour(folder) / ".claude.json" if folder else in_home(".claude.json")
    if windows:
        roaming = environ.get("APPDATA")
        applications = flavour(roaming) if roaming else in_home("AppData", "Roaming")
    elif platform == "darwin":
        applications = in_home("Library", "Application Support")
    else:
        named = environ.get("XDG_CONFIG_HOME")
        # The specification of these folders says that a relative one counts as none.
        applications = flavour(named) if named and named.startswith("/") else in_home(".config")
    if client is Client.vscode:
        return applications / "Code" / "User" / "mcp.json"
    return applications / "Claude" / "claude_desktop_config.json"


def server_entry(
    client: Client,
    env_id: str,
    task_id: str | None = None,
    *,
    store: Path,
    episode_id: str | None = None,
    data: Sequence[Path] = (),
    python: str = sys.executable,
) -> dict[str, Any]:
    """What a client needs to start an environment's server.

    Args:
        client: The application that will start it.
        env_id: The environment.
        task_id: The scenario that the episode starts from; None starts without a task.
        store: The file that keeps the episode from one process to the next.
        episode_id: The episode's name in the store; None is one of this client's own for this environment and
            task, so that two clients do not share a state unless they are told to.
        data: Folders of EnvScaler files that the environment is looked up in.
        python: The interpreter in which this package is installed.
    """
    episode = episode_id or episode_of(client.value, env_id, task_id)
    arguments = [
        # Without -P Python would import from the folder that the client happens to stand in.
        *("-P", "-m", "langchain_envscaler", "serve", env_id),
        *(() if task_id is None else ("--task", task_id)),
        *("--store", str(store.absolute()), "--episode-id", episode),
    ]
    for folder in data:
        arguments += ["--data", str(folder.absolute())]
    # Not resolved: the interpreter of a virtual environment is a link, and only as such finds its packages.
    entry: dict[str, Any] = {"command": os.path.abspath(python), "args": arguments}
    return entry if client in (Client.claude_desktop, Client.cursor) else {"type": "stdio", **entry}


def episode_of(user: str, env_id: str, task_id: str | None) -> str:
    """The name of the episode that one user of a store (an application, a bundle) has of an environment."""
    name = ".".join(part for part in (user, env_id, task_id) if part)
    fit = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in name)
    if fit == name and len(name) <= _MAX_NAME_LENGTH:
        return name
    # Names that were cut or changed must not meet.
    return f"{fit[: _MAX_NAME_LENGTH - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def install(client: Client, name: str, entry: Mapping[str, Any], config: Path) -> Change:
    """Write a server into a client's configuration, and leave everything else there as it is.

    What a person added to an earlier entry of this package (variables, switches) stays.

    Raises:
        UsageError: A name that clients do not take, or that another server has.
        DataError: A file that is not a configuration.
        InfrastructureError: A file that cannot be written.
    """
    _check_name(name)

    def edit(text: str) -> str:
        found = _found(text, client.section, name, config)
        wanted = {**(found or {}), **entry}
        return text if found == wanted else set_entry(text, client.section, name, wanted, str(config))

    return _rewrite(config, edit)


def uninstall(client: Client, name: str, config: Path) -> Change:
    """Take a server out of a client's configuration. Its episode stays in the store.

    Raises:
        UsageError: The server of that name is not one that this package wrote.
        DataError: A file that is not a configuration.
        InfrastructureError: A file that cannot be written.
    """

    def edit(text: str) -> str:
        _found(text, client.section, name, config)
        return remove_entry(text, client.section, name, str(config))

    return _rewrite(config, edit) if config.exists() else Change(config, changed=False, backup=None)


def _check_name(name: str) -> None:
    valid = name.isascii() and all(char.isalnum() or char in "-_" for char in name)
    if not valid or not 0 < len(name) <= _MAX_NAME_LENGTH:
        raise UsageError(
            f"expected a server's name of up to {_MAX_NAME_LENGTH} letters, digits, '-' and '_', "
            f"found {name!r}; give another with --name"
        )


def _found(text: str, section: str, name: str, config: Path) -> dict[str, Any] | None:
    """The entry of that name, which must be one of this package's."""
    value = decode_config(text, str(config)) if text.strip() else {}
    servers = value.get(section) if isinstance(value, dict) else None
    found = servers.get(name) if isinstance(servers, dict) else None
    if found is None:
        return None
    arguments = found.get("args") if isinstance(found, dict) else None
    command = found.get("command") if isinstance(found, dict) else None
    own = isinstance(arguments, list) and ("langchain_envscaler" in arguments or command == "envscaler")
    if not own:
        raise UsageError(
            f"expected the server {name!r} in {config} to be an environment's, found another program; "
            "it is left as it is: choose another name with --name"
        )
    return dict(found)


def _rewrite(config: Path, edit: Callable[[str], str]) -> Change:
    """Edit a file so that at each moment the old or the new one is there, whole."""
    # A configuration that is kept elsewhere and linked to stays a link.
    config = Path(os.path.realpath(config))
    try:
        before = config.read_bytes() if config.exists() else None
        text = (before or b"").decode("utf-8-sig")
        edited = edit(text)
        if edited == text:
            return Change(config, changed=False, backup=None)
        config.parent.mkdir(parents=True, exist_ok=True)
        backup = None
        if before is not None:
            backup = config.with_name(config.name + _BACKUP_SUFFIX)
            _replace(backup, before, like=config)
        mark = b"\xef\xbb\xbf" if before is not None and before.startswith(b"\xef\xbb\xbf") else b""
        _check_unchanged(config, before)
        _replace(config, mark + edited.encode(), like=config)
    except UnicodeDecodeError as error:
        raise DataError(f"expected UTF-8 text in {config}, found {error.reason}; correct the file") from None
    except OSError as error:
        raise InfrastructureError(
            f"expected to read and write {config}, found: {error}; name another file with --config PATH"
        ) from error
    return Change(config, changed=True, backup=backup)


def _check_unchanged(config: Path, before: bytes | None) -> None:
    if (config.read_bytes() if config.exists() else None) != before:
        raise InfrastructureError(
            f"expected {config} to keep still, found it changed meanwhile; close the client and try again"
        )


def _replace(path: Path, content: bytes, *, like: Path) -> None:
    """Put a file in place in one step, with another's permissions: configurations hold secrets."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if like.exists():
            shutil.copymode(like, temporary)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
