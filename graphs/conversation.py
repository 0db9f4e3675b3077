"""An agent in a bundled environment and a user who says what the task is, then that it is done."""

from typing import Any

from langgraph.graph.state import CompiledStateGraph

from langchain_envscaler.deployment import ContextModel, DeployedContext, episodes_store, placeholder_model
from langchain_envscaler.graphs.conversation import STOP, ConversationState, create_conversation
from langchain_envscaler.graphs.worlds import BundledWorlds


def speak(state: ConversationState) -> str:
    """The user's next message; put a chat model in this function's place for a livelier one."""
    if state["messages"]:
        return STOP
    return state["task"]["task"] or "Hello! What can you do for me?"


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph, without a checkpointer: the server brings its own."""
    return create_conversation(
        placeholder_model(),
        speak,
        worlds=BundledWorlds(episodes_store()),
        evaluate=True,
        middleware=[ContextModel()],
        context_schema=DeployedContext,
        name="conversation",
    )
