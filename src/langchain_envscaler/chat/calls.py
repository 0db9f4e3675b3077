"""One tool call, from the JSON that the model wrote between its tags."""

import json
import os
import re
from typing import Any, Literal

from langchain_core.messages import InvalidToolCall, ToolCall
from langchain_core.messages.tool import invalid_tool_call, tool_call

__all__ = ["call_of_parts", "read_call", "read_name"]

_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")


def read_call(
    text: str, *, ending: Literal["complete", "stopped", "cut_off"] = "complete"
) -> ToolCall | InvalidToolCall:
    """The call that a block holds, with a fresh id.

    Args:
        text: What stands between the tags, stripped.
        ending: Whether the text ran out before its JSON was complete: "stopped" by the model itself,
            "cut_off" by the token limit.

    Returns:
        The call; an invalid one, with the text and the reason, where it cannot be read as an object with a
        name and arguments.
    """
    if ending == "cut_off":
        return _invalid(text, read_name(text), "cut off by the token limit before its JSON was complete")
    try:
        block = _decode(text)
    except RecursionError:
        return _invalid(text, None, "its JSON is nested too deeply to be read")
    except ValueError as error:
        reason = "ended before its JSON was complete" if ending == "stopped" else f"not valid JSON: {error}"
        return _invalid(text, read_name(text), reason)
    return _from_object(text, block)


def call_of_parts(
    name: str, arguments: str, call_id: str | None, *, is_cut_off: bool = False
) -> ToolCall | InvalidToolCall:
    """The call that someone else took apart already.

    Args:
        name: The tool's name.
        arguments: The arguments as JSON text; nothing but white space means none.
        call_id: The call's id; None gives it a fresh one.
        is_cut_off: Whether the token limit ended the output.

    Returns:
        The call; an invalid one, with the arguments' text and the reason, where they are no object.
    """
    try:
        decoded = _decode(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        reason = f"not valid JSON: {error}"
        if is_cut_off:
            reason = "cut off by the token limit before its JSON was complete"
        return _invalid(arguments, name or None, reason, call_id)
    return _from_object(arguments, {"name": name, "arguments": decoded}, call_id)


def read_name(text: str) -> str | None:
    """The value of `name` at the top of an object that may be broken or incomplete, or None."""
    depth = 0
    for piece in _PIECE.finditer(text):
        found = piece.group()
        if found in "{[":
            depth += 1
        elif found in "}]":
            depth -= 1
        elif depth == 1 and found == '"name"' and (colon := _COLON.match(text, piece.end())):
            value = _PIECE.match(text, colon.end())
            return _decode_string(value.group()) if value and value.group()[0] == '"' else None
    return None


def _decode(text: str) -> Any:
    value = json.loads(text, strict=False, parse_constant=_refuse_constant)
    # Half of an escaped pair has no UTF-8 form: it would break whatever stores or sends the call.
    return _without_surrogates(value) if _LONE_SURROGATE.search(text) else value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _decode_string(text: str) -> str | None:
    try:
        return str(_without_surrogates(json.loads(text, strict=False)))
    except ValueError:
        return None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _from_object(text: str, block: Any, call_id: str | None = None) -> ToolCall | InvalidToolCall:
    if not isinstance(block, dict):
        return _invalid(text, None, f"expected an object with name and arguments, got {_kind(block)}")
    name = block.get("name")
    if not isinstance(name, str) or not name:
        return _invalid(text, None, "expected a name, a string that is not empty", call_id)
    arguments = block.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = _decode(arguments)
        except (ValueError, RecursionError):
            return _invalid(
                text, name, "expected arguments as an object, got a string that holds none", call_id
            )
    elif arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return _invalid(text, name, f"expected arguments as an object, got {_kind(arguments)}", call_id)
    return tool_call(name=name, args=arguments, id=call_id or _new_id())


def _kind(value: Any) -> str:
    kinds = {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _invalid(text: str, name: str | None, reason: str, call_id: str | None = None) -> InvalidToolCall:
    return invalid_tool_call(name=name, args=text, id=call_id or _new_id(), error=reason)


def _new_id() -> str:
    return f"call_{os.urandom(12).hex()}"
