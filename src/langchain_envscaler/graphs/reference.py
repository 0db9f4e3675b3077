"""The reference policy: a scenario's recorded solution, written as a Qwen3 would write it.

It stands where a model stands, behind the chat model's own prompt rendering and output reading, so that the
whole chain can be run and tested where there are no weights. It reads nothing but how many tool results the
prompt holds.
"""

import json
from collections.abc import Iterator
from typing import Any

from langchain_envscaler.chat.backends.base import Backend, GenerationChunk, GenerationRequest, Prompt, Usage
from langchain_envscaler.chat.model import ChatEnvScaler
from langchain_envscaler.environments.metadata import ReferenceCall, Scenario
from langchain_envscaler.errors import UsageError

__all__ = ["MODEL_NAME", "ReferenceBackend", "reference_model"]

MODEL_NAME = "reference"

_PIECE = 16  # characters a chunk, about what an engine sends at a time


class ReferenceBackend(Backend):
    """Writes the next call of a recorded solution; when all were made, that the task is completed."""

    def __init__(self, calls: list[ReferenceCall]) -> None:
        self._calls = calls

    @property
    def model_name(self) -> str:
        return MODEL_NAME

    def stream(self, request: GenerationRequest) -> Iterator[GenerationChunk]:
        """The recorded turn that comes after the tool results in the prompt."""
        text = self._turn(_results(request.prompt))
        if not request.enable_thinking:
            text = text.partition("</think>\n\n")[2]
        usage = Usage(input_tokens=0, output_tokens=0)
        for start in range(0, len(text), _PIECE):
            yield GenerationChunk(text[start : start + _PIECE], usage=usage)
        yield GenerationChunk(finish_reason="stop", usage=usage)

    def _turn(self, done: int) -> str:
        if done < len(self._calls):
            call = self._calls[done]
            body = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
            thought = (
                f"Step {done + 1} of the {len(self._calls)} that the recorded solution takes: {call.name}."
            )
            return f"<think>\n{thought}\n</think>\n\n<tool_call>\n{body}\n</tool_call>"
        thought = f"All {len(self._calls)} steps of the recorded solution are done."
        return f"<think>\n{thought}\n</think>\n\nTask Completed. The recorded solution has no more steps."


def _results(prompt: Prompt) -> int:
    # Only the format's own tokens count, so that a text which spells one is no result.
    return sum(segment.is_control and segment.text == "<tool_response>" for segment in prompt.segments)


def reference_model(scenario: Scenario, **options: Any) -> ChatEnvScaler:
    """A chat model that writes the scenario's recorded solution.

    Args:
        scenario: A scenario with a recorded solution.
        options: Further fields of `ChatEnvScaler`.

    Raises:
        UsageError: The scenario has no recorded solution.
    """
    if not scenario.reference:
        raise UsageError(
            "expected a task with a recorded solution for the reference policy, "
            f"{scenario.task_id!r} has none; name a model with --model or a server with --base-url"
        )
    return ChatEnvScaler(model=MODEL_NAME, backend=ReferenceBackend(list(scenario.reference)), **options)
