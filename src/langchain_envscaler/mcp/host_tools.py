"""Tools that run in the server itself, unlike an environment's: the control tools and the lobby's."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import INTERNAL_ERROR, CallToolResult, TextContent, Tool
from pydantic import BaseModel, ConfigDict, ValidationError

from langchain_envscaler.errors import InfrastructureError, UsageError
from langchain_envscaler.mcp.tools import error_result, json_text

__all__ = ["HostTool", "HostTools", "ToolArguments"]


class ToolArguments(BaseModel):
    """The arguments of a host tool: exactly the declared ones."""

    model_config = ConfigDict(extra="forbid", strict=True)


Arguments = TypeVar("Arguments", bound=ToolArguments)


@dataclass(frozen=True, slots=True)
class HostTool(Generic[Arguments]):
    """A tool with its arguments' model and the function that answers a call with a record."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Callable[[ServerRequestContext[Any, Any], Arguments], Awaitable[BaseModel]]

    def definition(self, name: str) -> Tool:
        """The tool as MCP lists it, under a name."""
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        for parameter in schema.get("properties", {}).values():
            parameter.pop("title", None)
        return Tool(name=name, description=self.description, input_schema=schema)

    async def call(
        self, ctx: ServerRequestContext[Any, Any], arguments: Mapping[str, Any] | None
    ) -> CallToolResult:
        """Run the tool; what the caller got wrong becomes an error result."""
        try:
            given = self.arguments.model_validate(arguments or {})
        except ValidationError as error:
            listed = "; ".join(
                f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"
                for one in error.errors(include_url=False, include_input=False)
            )
            return error_result(f"Invalid arguments for tool '{self.name}': {listed}")
        try:
            record = await self.run(ctx, given)
        except UsageError as error:
            return error_result(str(error))
        except InfrastructureError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        if isinstance(record, CallToolResult):
            return record
        data = record.model_dump(mode="json")
        return CallToolResult(content=[TextContent(text=json_text(data))], structured_content=data)


class HostTools:
    """A set of host tools beside an environment's own.

    Where an environment's own tool has a name already, the host tool goes by that name with `envscaler_`
    before it.
    """

    def __init__(self, tools: Iterable[HostTool[Any]]) -> None:
        self._tools = tuple(tools)

    def definitions(self, taken: frozenset[str] = frozenset()) -> list[Tool]:
        """The tools as MCP lists them, beside tools of the names that are taken."""
        return [tool.definition(_free(tool.name, taken)) for tool in self._tools]

    @property
    def names(self) -> list[str]:
        """The names of the tools, where none of them is taken."""
        return [tool.name for tool in self._tools]

    def get(self, name: str, taken: frozenset[str] = frozenset()) -> HostTool[Any] | None:
        """The tool that goes by a name."""
        return next((tool for tool in self._tools if _free(tool.name, taken) == name), None)


def _free(name: str, taken: frozenset[str]) -> str:
    return f"envscaler_{name}" if name in taken else name
