"""EnvScaler-Qwen3 for LangChain, its environments as MCP servers, and LangGraph graphs that join them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_envscaler.chat.model import ChatEnvScaler
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.episode import Episode, Evaluation, Observation
    from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
    from langchain_envscaler.errors import EnvScalerError
    from langchain_envscaler.graphs.agent import create_tool_agent
    from langchain_envscaler.graphs.toolset import MCPToolset

# LangChain and the engines are slow to import, so each public name loads its module when first used.
_HOMES = {
    "Catalog": "environments.catalog",
    "ChatEnvScaler": "chat.model",
    "EnvScalerError": "errors",
    "EnvironmentSpec": "environments.metadata",
    "Episode": "environments.episode",
    "Evaluation": "environments.episode",
    "MCPToolset": "graphs.toolset",
    "Observation": "environments.episode",
    "Scenario": "environments.metadata",
    "create_tool_agent": "graphs.agent",
}

__all__ = [
    "Catalog",
    "ChatEnvScaler",
    "EnvScalerError",
    "EnvironmentSpec",
    "Episode",
    "Evaluation",
    "MCPToolset",
    "Observation",
    "Scenario",
    "create_tool_agent",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
