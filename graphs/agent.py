"""An agent over the MCP servers of your configuration; the context names the model.

The configuration is the file that $ENVSCALER_MCP_CONFIG names, in the form of Claude Desktop, Cursor or VS
Code. Without one it is a bundled environment in a server process of its own.
"""

import os
import sys
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from langchain_envscaler.deployment import ContextModel, ModelContext, placeholder_model
from langchain_envscaler.graphs.agent import create_tool_agent

LIBRARY_DESK = {
    "mcpServers": {
        "library_desk": {
            "command": sys.executable,
            "args": ["-m", "langchain_envscaler", "serve", "library_desk"],
        }
    }
}


def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph, without a checkpointer: the server brings its own."""
    return create_tool_agent(
        placeholder_model(),
        os.environ.get("ENVSCALER_MCP_CONFIG") or LIBRARY_DESK,
        middleware=[ContextModel()],
        context_schema=ModelContext,
        name="agent",
    )
