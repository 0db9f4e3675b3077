"""Where a thread first stood in its episodes, for one that goes on from before it had a place."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config

from langchain_envscaler.graphs.state import EpisodePlace

__all__ = ["afirst_places", "first_places"]


def first_places() -> Mapping[str, EpisodePlace]:
    """The places of the running thread's oldest checkpoint that has any; called within a node.

    A checkpoint from before the first model call has no place. A thread that is taken back there is to find
    the world as it was, and the thread's own history tells which one that was.
    """
    saver, thread = _history()
    return _oldest(saver.list(thread)) if saver is not None else {}


async def afirst_places() -> Mapping[str, EpisodePlace]:
    """As `first_places`."""
    saver, thread = _history()
    if saver is None:
        return {}
    checkpoints: AsyncIterator[CheckpointTuple] = saver.alist(thread)
    return _oldest([one async for one in checkpoints])


def _history() -> tuple[BaseCheckpointSaver[Any] | None, RunnableConfig]:
    configurable = get_config().get("configurable", {})
    saver = configurable.get(CONFIG_KEY_CHECKPOINTER)
    # A node's namespace is its graph's with one more part.
    namespace = str(configurable.get("checkpoint_ns", "")).rpartition("|")[0]
    thread: RunnableConfig = {
        "configurable": {"thread_id": configurable.get("thread_id"), "checkpoint_ns": namespace}
    }
    return (saver if isinstance(saver, BaseCheckpointSaver) else None), thread


def _oldest(newest_first: Iterable[CheckpointTuple]) -> Mapping[str, EpisodePlace]:
    places: Mapping[str, EpisodePlace] = {}
    for one in newest_first:
        places = one.checkpoint["channel_values"].get("episodes") or places
    return places
