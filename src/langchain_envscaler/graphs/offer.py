"""What a toolset's servers offer, worked out once for each listing and looked at in every step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_envscaler.graphs.state import EpisodePlace
from langchain_envscaler.graphs.tools import MCPTool

__all__ = ["Offer"]


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of one listing."""

    tools: Sequence[MCPTool]
    by_name: Mapping[str, MCPTool]
    servers: Mapping[str, str]
    """Each tool's server."""
    functions: Sequence[dict[str, Any]]
    """The tools in OpenAI's form."""
    places: Mapping[str, EpisodePlace]
    """By server: the episodes that are served, at their newest revisions when they were listed."""

    @classmethod
    def of(cls, tools: Sequence[MCPTool]) -> "Offer":
        """Work out what tools imply."""
        return cls(
            tools=tools,
            by_name={tool.name: tool for tool in tools},
            servers={tool.name: tool.ref.server for tool in tools},
            functions=[tool.function for tool in tools],
            places={
                tool.ref.server: EpisodePlace(episode_id=tool.ref.episode_id, revision=tool.ref.revision or 0)
                for tool in tools
                if tool.ref.episode_id is not None
            },
        )
