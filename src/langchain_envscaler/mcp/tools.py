"""An environment's tools in MCP's terms: their definitions, the meta keys of a call, and a call's result."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from mcp import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, TextContent, Tool
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from langchain_envscaler.environments.metadata import EnvironmentSpec
from langchain_envscaler.errors import DataError

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from langchain_envscaler.environments.episode import Observation

__all__ = [
    "CALL_ID",
    "EPISODE_ID",
    "POSITION",
    "REPLAYED",
    "REVISION",
    "CallMeta",
    "ToolSet",
    "error_result",
    "observation_result",
]

EPISODE_ID = "envscaler/episode_id"
CALL_ID = "envscaler/call_id"
REVISION = "envscaler/revision"
POSITION = "envscaler/position"
REPLAYED = "envscaler/replayed"


class CallMeta(BaseModel):
    """What a call's request `_meta` says about its identity; every key is optional."""

    model_config = ConfigDict(frozen=True, strict=True)

    call_id: Annotated[str | None, Field(alias=CALL_ID, min_length=1, max_length=512)] = None
    revision: Annotated[int | None, Field(alias=REVISION, ge=0)] = None
    position: Annotated[int | None, Field(alias=POSITION, ge=0)] = None

    @classmethod
    def of(cls, meta: Mapping[str, Any] | None) -> "CallMeta":
        """Read the meta keys of a request.

        Raises:
            MCPError: A key whose value is not of its type (invalid params).
        """
        if not meta:
            return _NO_META
        try:
            return cls.model_validate(meta)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise MCPError(
                INVALID_PARAMS,
                f"expected another value for _meta key {first['loc'][0]}: {first['msg']}",
            ) from None


_NO_META = CallMeta()


@dataclass(frozen=True)
class ToolSet:
    """The tools of one environment."""

    tools: tuple[Tool, ...]

    @classmethod
    def of(cls, spec: EnvironmentSpec) -> "ToolSet":
        """The tools of an environment, each with the name, description and parameters of its own schema.

        Raises:
            DataError: A tool schema that MCP cannot carry.
        """
        return cls(tuple(_tool(schema, spec.env_id) for schema in spec.tools))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.tools)

    @cached_property
    def input_schemas(self) -> dict[str, dict[str, Any]]:
        return {tool.name: tool.input_schema for tool in self.tools}

    @cached_property
    def _validators(self) -> dict[str, "Validator"]:
        # Only the strict mode pays for the import.
        from jsonschema import Draft202012Validator

        return {tool.name: Draft202012Validator(tool.input_schema) for tool in self.tools}

    def type_errors(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """What a call's arguments violate in the tool's schema, or None (as for an unknown tool)."""
        validator = self._validators.get(name)
        errors = sorted(validator.iter_errors(arguments), key=lambda e: e.json_path) if validator else []
        if not errors:
            return None
        listed = "; ".join(f"{error.json_path.removeprefix('$.')}: {error.message}" for error in errors[:5])
        return f"Invalid arguments for tool '{name}': {listed}"


def _tool(schema: Mapping[str, Any], env_id: str) -> Tool:
    function = schema.get("function", schema)
    try:
        tool = Tool(
            name=function["name"],
            description=function.get("description") or "",
            input_schema=function.get("parameters") or {"type": "object", "properties": {}},
        )
    except (KeyError, TypeError, AttributeError, ValidationError):
        name = function.get("name") if isinstance(function, Mapping) else None
        raise DataError(
            f"expected an OpenAI function schema (name, description, parameters) for each tool of "
            f"environment {env_id!r}, found another form at tool {name!r}; correct the environment's tools"
        ) from None
    if tool.input_schema.get("type") != "object":
        raise DataError(
            f'expected parameters of type "object" for tool {tool.name!r} of environment {env_id!r}, '
            f"found {tool.input_schema.get('type')!r}; correct the environment's tools"
        )
    return tool


def observation_result(episode_id: str, observation: "Observation") -> CallToolResult:
    """An observation as a tool's result.

    The text is Python's `str` of what the method returned. The structured content is its JSON form, wrapped
    as `{"result": value}` where that is not an object, because MCP's structured content is an object.
    """
    return CallToolResult(
        content=[TextContent(text=observation.text)],
        structured_content=structured(observation.data),
        is_error=observation.is_error,
        _meta={
            EPISODE_ID: episode_id,
            CALL_ID: observation.call_id,
            REVISION: observation.revision,
            REPLAYED: observation.replayed,
        },
    )


def structured(data: JsonValue) -> dict[str, JsonValue]:
    """A JSON value as structured content: an object as it is, anything else under `result`."""
    return data if isinstance(data, dict) else {"result": data}


def error_result(
    text: str, episode_id: str | None = None, revision: int | None = None, call_id: str | None = None
) -> CallToolResult:
    """A result that tells the model what was wrong with its call; nothing ran."""
    meta = {EPISODE_ID: episode_id, REVISION: revision, CALL_ID: call_id}
    known = {key: value for key, value in meta.items() if value is not None}
    return CallToolResult(content=[TextContent(text=text)], is_error=True, _meta=known or None)


def json_text(value: Any) -> str:
    """A JSON value as the text of a result or a resource."""
    return json.dumps(value, ensure_ascii=False, indent=2)
