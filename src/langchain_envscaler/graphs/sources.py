"""Which toolset a thread has: one for all, or one by the thread's state."""

from typing import Any, Protocol

from langchain_envscaler.graphs.toolset import MCPToolset

__all__ = ["OneToolset", "ToolsetSource"]


class ToolsetSource(Protocol):
    """Tells which toolset a thread has."""

    def of(self, state: Any) -> MCPToolset:
        """The toolset for a thread's state."""
        ...

    async def aof(self, state: Any) -> MCPToolset:
        """As `of`."""
        ...


class OneToolset:
    """The same toolset for every thread."""

    def __init__(self, toolset: MCPToolset) -> None:
        self._toolset = toolset

    def of(self, state: Any) -> MCPToolset:
        return self._toolset

    async def aof(self, state: Any) -> MCPToolset:
        return self._toolset
