"""The names under which the tools of several servers reach a model."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from langchain_envscaler.errors import UsageError

__all__ = ["Prefix", "matches", "publish"]

Prefix: TypeAlias = Literal["auto", "always", "never"]
"""When a tool's name gets its server's name before it: where two servers share it, always, or never."""

_MAX_LENGTH = 64
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")


def publish(tools: Iterable[tuple[str, str]], prefix: Prefix) -> dict[str, tuple[str, str]]:
    """Give each tool, known by server and name, a name of its own that model providers accept.

    A tool keeps its name where no other server has one of that name. Where two have, both get their server's
    name before theirs (`files_search`, `web_search`), whatever order they come in. Characters other than
    letters, digits, `_` and `-` become `_`; a name of more than 64 characters is cut and ends in a hash.

    Returns:
        The published names, in order, each with its server and name.

    Raises:
        UsageError: Two tools end up with one name: a clash with prefix "never", or a server's own fault.
    """
    tools = list(tools)
    shared = Counter(_clean(name) for _, name in tools)
    published: dict[str, tuple[str, str]] = {}
    for server, name in tools:
        prefixed = prefix == "always" or (prefix == "auto" and shared[_clean(name)] > 1)
        chosen = _clean(f"{server}_{name}" if prefixed else name)
        if chosen in published:
            raise _clash(chosen, published[chosen], (server, name), prefix)
        published[chosen] = (server, name)
    return published


def matches(patterns: Iterable[str], server: str, name: str) -> bool:
    """Whether a tool is meant by one of the patterns: `name` or `server/name`, with `*` and `?`."""
    return any(fnmatchcase(name, one) or fnmatchcase(f"{server}/{name}", one) for one in patterns)


def _clean(name: str) -> str:
    clean = _FORBIDDEN.sub("_", name)
    if len(clean) <= _MAX_LENGTH:
        return clean
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{clean[: _MAX_LENGTH - 9]}_{digest}"


def _clash(chosen: str, one: tuple[str, str], other: tuple[str, str], prefix: Prefix) -> UsageError:
    advice = 'let prefix be "auto"' if prefix == "never" else "rename a server, or exclude one of the tools"
    return UsageError(
        f"expected a name of its own for each tool, found {chosen!r} for {'/'.join(one)} and for "
        f"{'/'.join(other)}; {advice}"
    )
