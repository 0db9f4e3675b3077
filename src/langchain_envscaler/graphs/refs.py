"""One tool of one server, as it is published to a model."""

from dataclasses import dataclass

from mcp_types import Tool, ToolAnnotations

__all__ = ["ToolRef"]


@dataclass(frozen=True, slots=True)
class ToolRef:
    """One tool of one server, as it is published."""

    name: str
    """The name under which a model knows it."""
    server: str
    tool: Tool
    timeout: float | None
    """Seconds that a call may take."""
    episode_id: str | None = None
    """The episode that the server's listing named, if it serves one."""
    revision: int | None = None
    """The episode's newest revision at the time of the listing."""
    repeat: bool = False
    """The user said that calls of it may be repeated."""

    @property
    def annotations(self) -> ToolAnnotations | None:
        return self.tool.annotations

    @property
    def read_only(self) -> bool:
        return self.tool.annotations is not None and self.tool.annotations.read_only_hint is True

    @property
    def destructive(self) -> bool:
        """Whether it may destroy something: what MCP supposes of a tool that does not say."""
        hint = self.tool.annotations.destructive_hint if self.tool.annotations is not None else None
        return not self.read_only and hint is not False

    @property
    def repeatable(self) -> bool:
        """Whether calling it twice has no other effect than calling it once.

        The calls of an episode have an identity: the same one again gives the recorded result.
        """
        annotated = self.tool.annotations is not None and self.tool.annotations.idempotent_hint is True
        return self.repeat or self.read_only or annotated or self.episode_id is not None
