"""What an episode shows beside its tools: the introduction, the rules, the task and the state; a prompt."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from langchain_envscaler.environments.metadata import EnvironmentSpec
from langchain_envscaler.mcp.tools import EPISODE_ID, REVISION, json_text

if TYPE_CHECKING:
    from langchain_envscaler.environments.episode import Episode

__all__ = ["instructions", "prompt", "prompts", "read_resource", "resource_templates", "resources"]

_INTRODUCTION = "envscaler://introduction"
_RULES = "envscaler://rules"
TASK = "envscaler://task"
STATE = "envscaler://state"
"""The state's address; with `?revision=N` it is that of an earlier revision."""

_REVISION_QUERY = re.compile(r"[0-9]{1,18}")


def instructions(spec: EnvironmentSpec) -> str:
    """What a client tells its model about the environment: its introduction and its rules."""
    parts = [_introduction(spec)]
    if spec.constraints_rules:
        parts.append("Rules:\n" + _rules(spec))
    return "\n\n".join(part for part in parts if part)


def resources(episode: "Episode") -> ListResourcesResult:
    """The resources of an episode; the task is among them where the episode has one."""
    listed = [
        _resource(_INTRODUCTION, "introduction", "What the environment is", "text/plain"),
        _resource(_RULES, "rules", "The rules that hold in the environment, one a line", "text/plain"),
        _resource(STATE, "state", "The state that the environment is in now", "application/json"),
    ]
    if episode.scenario is not None:
        listed.insert(2, _resource(TASK, "task", "What is to be done in this episode", "text/plain"))
    return ListResourcesResult(resources=listed)


def resource_templates() -> ListResourceTemplatesResult:
    """The one template: the state at a revision."""
    template = ResourceTemplate(
        uri_template=f"{STATE}{{?revision}}",
        name="state at a revision",
        description="The state that the environment was in at a revision; without one, the state now",
        mime_type="application/json",
    )
    return ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(episode: "Episode", uri: str) -> ReadResourceResult:
    """The contents of a resource.

    Raises:
        MCPError: No such resource, or a revision that is not a number (invalid params).
        EnvScalerError: A revision that the episode does not have.
    """
    spec, scenario = episode.spec, episode.scenario
    if uri == _INTRODUCTION:
        return _contents(episode, uri, _introduction(spec))
    if uri == _RULES:
        return _contents(episode, uri, _rules(spec))
    if uri == TASK and scenario is not None:
        return _contents(episode, uri, scenario.task)
    if uri.partition("?")[0] == STATE:
        state = await episode.astate(_revision(uri))
        return _contents(episode, uri, json_text(state), "application/json")
    raise MCPError(INVALID_PARAMS, f"Resource not found: {uri}", data={"uri": uri})


def prompts() -> ListPromptsResult:
    """The one prompt: solve the task."""
    return ListPromptsResult(
        prompts=[
            Prompt(
                name="solve",
                description="Solve the episode's task with the environment's tools",
                arguments=[
                    PromptArgument(name="task", description="What to do instead of the episode's own task")
                ],
            )
        ]
    )


def prompt(episode: "Episode", name: str, arguments: Mapping[str, str] | None) -> GetPromptResult:
    """The messages of a prompt.

    Raises:
        MCPError: No such prompt, or neither the episode nor the arguments hold a task (invalid params).
    """
    if name != "solve":
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name}; the one prompt is solve")
    task = (arguments or {}).get("task") or (episode.scenario.task if episode.scenario else "")
    if not task:
        raise MCPError(INVALID_PARAMS, "This episode has no task of its own; give one as the argument 'task'")
    text = (
        f"{instructions(episode.spec)}\n\nTask:\n{task}\n\n"
        "Work on the task with the tools, one step after another, and keep to the rules. When everything is "
        'done, answer with "Task Completed"; if it cannot be done, answer with "Task Failed" and say why.'
    )
    return GetPromptResult(
        description="Solve the task", messages=[PromptMessage(role="user", content=TextContent(text=text))]
    )


def _introduction(spec: EnvironmentSpec) -> str:
    return (spec.environment_introduction or spec.environment_summary).strip()


def _rules(spec: EnvironmentSpec) -> str:
    return "\n".join(f"- {rule}" for rule in spec.constraints_rules)


def _resource(uri: str, name: str, description: str, mime_type: str) -> Resource:
    return Resource(uri=uri, name=name, description=description, mime_type=mime_type)


def _contents(episode: "Episode", uri: str, text: str, mime_type: str = "text/plain") -> ReadResourceResult:
    meta: dict[str, Any] = {EPISODE_ID: episode.episode_id, REVISION: episode.revision}
    return ReadResourceResult(
        contents=[TextResourceContents(uri=uri, text=text, mime_type=mime_type)], _meta=meta
    )


def _revision(uri: str) -> int | None:
    """The revision that a state's address names, or None."""
    values = parse_qs(urlsplit(uri).query, keep_blank_values=True)
    if not values:
        return None
    given = values.get("revision", [])
    if len(values) != 1 or len(given) != 1 or not _REVISION_QUERY.fullmatch(given[0]):
        raise MCPError(INVALID_PARAMS, f"expected {STATE} or {STATE}?revision=N, found {uri}")
    return int(given[0])
