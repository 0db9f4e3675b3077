"""Constraints as structural tags: the form in which xgrammar, and the engines that use it, take them."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_envscaler.chat.constraint import CallConstraint, Constraint, ToolSchema
from langchain_envscaler.chat.schemas import grammar_schema

__all__ = ["Content", "bounded_json", "structural_tag"]

Content: TypeAlias = Callable[[Mapping[str, Any], str], dict[str, Any]]
"""Makes the format for JSON of a prepared schema; the text names the schema's place, for errors."""

_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def structural_tag(constraint: Constraint, content: Content) -> dict[str, Any]:
    """The constraint as a structural tag.

    Args:
        constraint: What the answer must look like.
        content: What stands for JSON of a schema.

    Raises:
        UsageError: A schema says what no grammar can hold.
    """
    return {"type": "structural_tag", "format": _format(constraint, content)}


def bounded_json(schema: Mapping[str, Any], at: str) -> dict[str, Any]:
    """JSON of a schema for an engine that makes the grammar itself: of free white space some find no end."""
    return {"type": "json_schema", "json_schema": dict(schema), "max_whitespace_cnt": 1}


def _format(constraint: Constraint, content: Content) -> dict[str, Any]:
    if isinstance(constraint, CallConstraint):
        return _calls(constraint, content)
    answer = content(
        grammar_schema(constraint.schema or _ANY_OBJECT, at="response_format"), "response_format"
    )
    if constraint.calls is None:
        return answer
    return {"type": "or", "elements": [_calls(constraint.calls, content), answer]}


def _calls(constraint: CallConstraint, content: Content) -> dict[str, Any]:
    tags = [_tag(tool, content) for tool in constraint.tools]
    if not constraint.required:
        return {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags}
    return {
        "type": "tags_with_separator",
        "tags": tags,
        "separator": "\n",
        "at_least_one": True,
        "stop_after_first": not constraint.parallel,
    }


def _tag(tool: ToolSchema, content: Content) -> dict[str, Any]:
    at = f"tool {tool.name}"
    schema = grammar_schema(tool.parameters or _ANY_OBJECT, at=at, is_strict=tool.is_strict)
    return {
        "type": "tag",
        "begin": f'<tool_call>\n{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "arguments": ',
        "content": content(schema, at),
        "end": "}\n</tool_call>",
    }
