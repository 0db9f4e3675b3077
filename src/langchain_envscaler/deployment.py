"""What graphs to deploy share: a run's context as a form, and the model that it names.

A graph that is made for its schemas only starts nothing: no model is loaded, no server started and no file
made before the first run.
"""

import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field

from langchain_envscaler.chat.model import ChatEnvScaler
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.metadata import Scenario
from langchain_envscaler.graphs.environment import EnvironmentContext
from langchain_envscaler.graphs.reference import MODEL_NAME, ReferenceBackend
from langchain_envscaler.runs import ModelChoice, default_home

__all__ = ["ContextModel", "DeployedContext", "ModelContext", "episodes_store", "placeholder_model"]


class ModelContext(BaseModel):
    """Which model a run uses."""

    model: Annotated[
        str,
        Field(
            description="A model's name; \"reference\" replays a bundled task's recorded solution, offline"
        ),
    ] = MODEL_NAME
    base_url: Annotated[
        str | None, Field(description="An OpenAI-compatible server; without one the model runs in process")
    ] = None
    api: Annotated[Literal["chat", "completions"], Field(description="The server's endpoint to use")] = "chat"
    max_tokens: Annotated[int | None, Field(description="Tokens in one answer of the model", ge=1)] = None
    temperature: Annotated[float, Field(description="0 is greedy", ge=0, le=2)] = 0.7
    enable_thinking: Annotated[bool, Field(description="Let the model think before it answers")] = True

    def choice(self) -> ModelChoice:
        """The same as the command line's choice."""
        return ModelChoice(**{name: getattr(self, name) for name in ModelContext.model_fields})


class DeployedContext(EnvironmentContext, ModelContext):
    """A run's context: the model, and the episode that a new thread begins."""

    env_id: Annotated[str | None, Field(description="The environment, for a new thread")] = "library_desk"
    task_id: Annotated[str | None, Field(description="The task, for a new thread")] = (
        "library_desk-01-return-a-book"
    )


class ContextModel(AgentMiddleware[Any, Any, Any]):
    """Puts the model that a run's context names in the place of the graph's own."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._models: dict[tuple[ModelChoice, str | None], BaseChatModel] = {}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(request.override(model=self._model(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(request.override(model=self._model(request)))

    def _model(self, request: ModelRequest[Any]) -> BaseChatModel:
        context = request.runtime.context
        choice = (context if isinstance(context, ModelContext) else ModelContext()).choice()
        scenario = _scenario(request.state) if choice.model == MODEL_NAME else None
        key = (choice, scenario.task_id if scenario is not None else None)
        with self._lock:
            if key not in self._models:
                self._models[key] = choice.build(scenario)
            return self._models[key]


def episodes_store() -> Path:
    """Where the episodes of deployed graphs are kept, so that threads outlive the server's process."""
    return default_home() / "episodes.sqlite"


def placeholder_model() -> BaseChatModel:
    """A model that costs nothing to make, for a graph whose runs name their own."""
    return ChatEnvScaler(model=MODEL_NAME, backend=ReferenceBackend([]))


def _scenario(state: Any) -> Scenario | None:
    task = state.get("task")
    if task is None or task["task_id"] is None:
        return None
    return Catalog.bundled().scenario(task["env_id"], task["task_id"])
