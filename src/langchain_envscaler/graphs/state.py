"""What a thread's checkpoints hold: messages, each episode's place, and counters. All of it is JSON."""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage, ToolMessage
from typing_extensions import TypedDict

__all__ = ["EpisodePlace", "ToolAgentState", "Turn", "merge_places", "places_of", "starts_turn"]


class EpisodePlace(TypedDict):
    """Where a thread stands in an episode: the world that it sees."""

    episode_id: str
    revision: int
    """The revision that the thread's last call led to; its next one starts from there."""


class Turn(TypedDict):
    """What the agent has spent since the last message that was not a tool's."""

    steps: int
    """Model calls."""
    tokens: int
    """Tokens of prompts and outputs, as far as the model told."""


def merge_places(
    left: dict[str, EpisodePlace] | None, right: dict[str, EpisodePlace] | None
) -> dict[str, EpisodePlace]:
    """Join what parallel calls say of the episodes' places.

    Revisions grow as they are made, so among calls of one message the newest is the one that stands on the
    others. Another episode takes the place of the one before.
    """
    merged = dict(left or {})
    for server, place in (right or {}).items():
        known = merged.get(server)
        if (
            known is not None
            and known["episode_id"] == place["episode_id"]
            and known["revision"] > place["revision"]
        ):
            continue
        merged[server] = place
    return merged


class ToolAgentState(AgentState[Any]):
    """The state of an agent with MCP tools."""

    episodes: NotRequired[Annotated[dict[str, EpisodePlace], merge_places]]
    """By server: the episodes that the thread acts in."""
    turn: NotRequired[Annotated[Turn, PrivateStateAttr]]


def places_of(state: Any) -> dict[str, EpisodePlace]:
    """The places that a state holds."""
    return state.get("episodes") or {}


def starts_turn(messages: Sequence[AnyMessage]) -> bool:
    """Whether a model call on these messages begins a turn, instead of going on after tool results."""
    return not messages or not isinstance(messages[-1], ToolMessage)
