"""One entry of a client's configuration, changed in the file's text.

The file belongs to the client and to the person who wrote it: comments, key order, numbers and white space
around the entry stay as they are, so the text is edited and never written anew from its value.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_envscaler.errors import DataError
from langchain_envscaler.mcp.config_text import decode_config

__all__ = ["remove_entry", "set_entry"]

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"/]+""", re.DOTALL
)
_DEFAULT_INDENT = "  "


def set_entry(text: str, section: str, name: str, entry: Mapping[str, Any], where: str) -> str:
    """The text with `entry` under `name` in the object `section`, which is made if it is not there.

    Args:
        text: A configuration, JSON with or without comments; an empty one counts as `{}`.
        section: The key that holds the entries, such as `mcpServers`.
        name: The entry's key.
        entry: Its value, put in an existing entry's place.
        where: The file's name, for messages.

    Raises:
        DataError: A text that is not a JSON object, or whose section is none.
    """
    text = text if text.strip() else "{}\n"
    config = _config(text, section, where)
    root = _object(text, _tokens(text), 0)
    held = root.member(section)
    if held is None:
        edited = _insert(text, root, section, {name: entry})
    else:
        servers = _object(text, _tokens(text), held.value_token)
        old = servers.member(name)
        edited = _insert(text, servers, name, entry) if old is None else _replace(text, servers, old, entry)
    return _checked(edited, {**config, section: {**config.get(section, {}), name: dict(entry)}}, where)


def remove_entry(text: str, section: str, name: str, where: str) -> str:
    """The text without the entry `name` of the object `section`; unchanged where there is none.

    Raises:
        DataError: A text that is not a JSON object, or whose section is none.
    """
    if not text.strip():
        return text
    config = _config(text, section, where)
    if name not in config.get(section, {}):
        return text
    tokens = _tokens(text)
    held = _object(text, tokens, 0).member(section)
    assert held is not None
    servers = _object(text, tokens, held.value_token)
    left = {key: value for key, value in config[section].items() if key != name}
    return _checked(_remove(text, servers, name), {**config, section: left}, where)


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _Member:
    name: str
    start: int
    value_token: int
    value_start: int
    end: int
    comma: _Token | None
    """The comma behind it."""


@dataclass(frozen=True)
class _Object:
    start: int
    """Where its opening bracket stands."""
    end: int
    """Where its closing bracket stands."""
    members: tuple[_Member, ...]

    def member(self, name: str) -> _Member | None:
        return next((member for member in self.members if member.name == name), None)


def _config(text: str, section: str, where: str) -> dict[str, Any]:
    config = decode_config(text, where)
    if not isinstance(config, dict):
        raise DataError(f"expected a JSON object in {where}, found {type(config).__name__}; correct the file")
    if not isinstance(config.get(section, {}), dict):
        found = type(config[section]).__name__
        raise DataError(f"expected an object under {section!r} in {where}, found {found}; correct the file")
    return config


def _checked(edited: str, expected: dict[str, Any], where: str) -> str:
    """The edited text, if it means what it should: a wrong edit must not reach the file."""
    if decode_config(edited, where) != expected:
        raise DataError(f"expected JSON that can be edited in {where}; add the entry by hand (see --print)")
    return edited


def _tokens(text: str) -> list[_Token]:
    return [
        _Token(found[0], found.start(), found.end())
        for found in _TOKEN.finditer(text)
        if found["comment"] is None
    ]


def _object(text: str, tokens: list[_Token], opening: int) -> _Object:
    """The object that begins at a token; the text is known to be valid."""
    members: list[_Member] = []
    at = opening + 1
    while tokens[at].text != "}":
        value = at + 2
        last = _last_token(tokens, value)
        comma = tokens[last + 1] if tokens[last + 1].text == "," else None
        members.append(
            _Member(
                json.loads(tokens[at].text),
                tokens[at].start,
                value,
                tokens[value].start,
                tokens[last].end,
                comma,
            )
        )
        at = last + 1 if comma is None else last + 2
    return _Object(tokens[opening].start, tokens[at].start, tuple(members))


def _last_token(tokens: list[_Token], at: int) -> int:
    """The last token of the value that begins at one."""
    depth = 0
    while True:
        depth += (tokens[at].text in ("{", "[")) - (tokens[at].text in ("}", "]"))
        if depth == 0:
            return at
        at += 1


def _insert(text: str, into: _Object, name: str, value: Any) -> str:
    """A new last member."""
    if not into.members:
        return _insert_first(text, into, name, value)
    last = into.members[-1]
    lead = text[into.start + 1 : into.members[0].start]
    end = len(text[: into.end].rstrip())
    if "\n" in lead or "\n" in text[last.end : end + 1]:
        before = _newline(text) + _indent_at(text, into.members[0].start)
    else:
        before = " " if last.comma is None or text[end - 1] != " " else ""
    rendered = f"{before}{json.dumps(name, ensure_ascii=False)}: {_rendered(text, value, before)}"
    if last.comma is not None:
        return text[:end] + rendered + "," + text[end:]
    return text[: last.end] + "," + text[last.end : end] + rendered + text[end:]


def _insert_first(text: str, into: _Object, name: str, value: Any) -> str:
    outer = _newline(text) + _indent_at(text, into.start)
    inner = outer + _indent_unit(text)
    # What stands there is white space or comments, and a comment of one line must end before the bracket.
    end = len(text[: into.end].rstrip())
    member = f"{inner}{json.dumps(name, ensure_ascii=False)}: {_rendered(text, value, inner)}{outer}"
    return text[:end] + member + text[into.end :]


def _replace(text: str, inside: _Object, old: _Member, value: Any) -> str:
    lines = "\n" in text[inside.start : old.start]
    before = _newline(text) + _indent_at(text, old.start) if lines else ""
    return text[: old.value_start] + _rendered(text, value, before) + text[old.end :]


def _remove(text: str, inside: _Object, name: str) -> str:
    names = [member.name for member in inside.members]
    at = names.index(name)
    member = inside.members[at]
    start, end = member.start, member.end
    if member.comma is not None:
        # What stands between a value and its comma can only be white space or a comment on the entry.
        end = member.comma.end
    start = len(text[:start].rstrip(" \t"))
    if text[:start].endswith("\n") and (rest := re.compile(r"[ \t]*\r?\n").match(text, end)):
        end = rest.end()
    elif member.comma is not None:
        start, end = member.start, end + len(text[end:]) - len(text[end:].lstrip(" \t"))
    head, tail = text[:start], text[end:]
    previous = inside.members[at - 1].comma if at else None
    if member.comma is None and previous is not None:
        head = head[: previous.start] + head[previous.end :]
    if len(names) == 1 and not text[inside.start + 1 : member.start].strip():
        closing = tail.lstrip()
        if closing.startswith("}"):
            return text[: inside.start + 1] + closing
    return head + tail


def _rendered(text: str, value: Any, before: str) -> str:
    """The value as JSON: on lines of its own where the text around it is, else in one line."""
    if "\n" not in before:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_indent_unit(text)).split("\n")
    return before.join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, at: int) -> str:
    """The white space that begins the line of a place."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _indent_unit(text: str) -> str:
    """The white space of one level: the first that is found."""
    found = re.search(r"\n([ \t]+)[\"}]", text)
    return found[1] if found else _DEFAULT_INDENT
