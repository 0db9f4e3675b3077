"""An agent in a bundled environment, one episode a thread; the context names the model and the task."""

from typing import Any

from langgraph.graph.state import CompiledStateGraph

from langchain_envscaler.deployment import ContextModel, DeployedContext, episodes_store, placeholder_model
from langchain_envscaler.graphs.environment import create_environment_agent
from langchain_envscaler.graphs.worlds import BundledWorlds


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph, without a checkpointer: the server brings its own."""
    return create_environment_agent(
        placeholder_model(),
        worlds=BundledWorlds(episodes_store()),
        evaluate=True,
        middleware=[ContextModel()],
        context_schema=DeployedContext,
        name="environment_agent",
    )
