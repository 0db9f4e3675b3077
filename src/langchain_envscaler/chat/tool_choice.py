"""Which tools an output may or must call, from the many forms in which callers say it."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_envscaler.chat.constraint import CallConstraint, ToolSchema
from langchain_envscaler.errors import NotFoundError, UsageError

__all__ = ["call_constraint", "resolve_tool_choice"]

_MODES = {"auto": "auto", "none": "none", "any": "required", "required": "required"}


def resolve_tool_choice(choice: Any, tools: Sequence[Mapping[str, Any]]) -> str:
    """The choice as "auto", "none", "required", or the name of one of the tools.

    Args:
        choice: One of these words, "any", a tool's name, a bool, None, or an object that names a tool:
            `{"type": "function", "function": {"name": ...}}` or `{"type": "tool", "name": ...}`.
        tools: The tools as OpenAI function schemas.

    Raises:
        NotFoundError: It names a tool that is not among the tools.
        UsageError: A call is asked for and there is no tool, or the choice has another form.
    """
    if choice is None or choice is False:
        return "auto"
    name = "any" if choice is True else _named(choice)
    names = [tool["function"]["name"] for tool in tools]
    if name in names:
        return name
    mode = _MODES.get(name)
    if mode is None:
        raise NotFoundError(
            "tool_choice: expected auto, any, required, none or a bound tool's name "
            f"({', '.join(names) or 'none is bound'}), got {name!r}; bind that tool or choose another"
        )
    if mode == "required" and not tools:
        raise UsageError(
            f"tool_choice {name!r} asks for a call, but no tool is bound; give tools to bind_tools"
        )
    return mode


def call_constraint(
    tools: Sequence[Mapping[str, Any]], choice: str, *, strict: bool, parallel: bool
) -> CallConstraint | None:
    """The constraint that a resolved choice asks for; None where the model is free.

    Args:
        tools: The tools as OpenAI function schemas; one with `"strict": true` is held to its schema.
        choice: What :func:`resolve_tool_choice` gave.
        strict: Whether every call must fit its tool's schema, also where the model may choose not to call.
        parallel: Whether more than one call may be written.
    """
    if choice == "none":
        return None
    held = [strict or bool(tool["function"].get("strict")) for tool in tools]
    if choice == "auto" and not any(held):
        return None
    is_forced = choice != "auto"
    schemas = tuple(
        _tool_schema(tool, is_held=is_held or is_forced, is_strict=is_held)
        for tool, is_held in zip(tools, held, strict=True)
        if choice in ("auto", "required", tool["function"]["name"])
    )
    return CallConstraint(schemas, required=is_forced, parallel=parallel)


def _named(choice: Any) -> str:
    if isinstance(choice, str):
        return choice
    if isinstance(choice, Mapping):
        function = choice.get("function")
        name = (
            function.get("name") if isinstance(function, Mapping) else choice.get("name", choice.get("type"))
        )
        if isinstance(name, str):
            return name
    raise UsageError(
        "tool_choice: expected auto, any, required, none, a tool's name or an object that names one, "
        f"got {choice!r}"
    )


def _tool_schema(tool: Mapping[str, Any], *, is_held: bool, is_strict: bool) -> ToolSchema:
    function = tool["function"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return ToolSchema(function["name"], parameters if is_held else None, is_strict)
