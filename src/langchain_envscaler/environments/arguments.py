"""What is wrong with a tool call before it is made, in words that a model can act on."""

from collections.abc import Mapping
from typing import Any

from langchain_envscaler.environments.metadata import EnvironmentSpec

__all__ = ["problem_with_call"]


def problem_with_call(spec: EnvironmentSpec, name: str, arguments: Mapping[str, Any]) -> str | None:
    """What keeps a call from being made (no such tool, a missing or unknown argument); None if nothing does.

    Types are not looked at: the environment answers to a wrong one as it did when the model was trained.
    """
    for tool in spec.tools:
        if tool["function"]["name"] == name:
            return _problem_with_arguments(tool["function"], arguments)
    names = ", ".join(tool["function"]["name"] for tool in spec.tools)
    return f"Unknown tool: {name!r}. Available tools: {names}."


def _problem_with_arguments(function: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    parameters = function["parameters"]
    properties, required = parameters.get("properties") or {}, parameters.get("required") or ()
    if all(name in arguments for name in required) and all(name in properties for name in arguments):
        return None
    problems = [f"missing required argument {name!r}" for name in required if name not in arguments]
    problems += [f"unknown argument {name!r}" for name in arguments if name not in properties]
    expected = ", ".join(
        f"{name} ({schema.get('type', 'any type')}, {'required' if name in required else 'optional'})"
        for name, schema in properties.items()
    )
    return (
        f"Invalid arguments for {function['name']}: {'; '.join(problems)}. "
        f"Expected arguments: {expected or 'none'}."
    )
