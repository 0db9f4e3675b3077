"""OpenTelemetry spans of an agent's model and tool calls, by the conventions for generative AI.

LangChain's own callbacks, which LangSmith listens to, are told the same in their metadata. Without a
configured OpenTelemetry SDK a span costs next to nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from mcp_types import CallToolResult
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from langchain_envscaler.graphs.refs import ToolRef
from langchain_envscaler.mcp.tools import EPISODE_ID, REPLAYED, REVISION

__all__ = ["model_span", "note_answer", "note_result", "tool_span"]

_tracer = trace.get_tracer("langchain_envscaler.graphs")

EPISODE_ATTRIBUTE = "envscaler.episode_id"
BASE_ATTRIBUTE = "envscaler.base_revision"
REVISION_ATTRIBUTE = "envscaler.revision"
REPLAYED_ATTRIBUTE = "envscaler.replayed"


@contextmanager
def model_span(model: Any) -> Iterator[Span]:
    """A span around one call of a chat model."""
    name = getattr(model, "model", None) or getattr(model, "model_name", None) or type(model).__name__
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": str(name)}
    with _tracer.start_as_current_span(f"chat {name}", kind=SpanKind.CLIENT, attributes=attributes) as span:
        yield span


def note_answer(span: Span, answer: Sequence[BaseMessage]) -> None:
    """What a model's answer adds to its span."""
    if not span.is_recording():
        return
    for message in answer:
        if isinstance(message, AIMessage) and message.usage_metadata is not None:
            span.set_attribute("gen_ai.usage.input_tokens", message.usage_metadata["input_tokens"])
            span.set_attribute("gen_ai.usage.output_tokens", message.usage_metadata["output_tokens"])


@contextmanager
def tool_span(ref: ToolRef, call_id: str | None, revision: int | None) -> Iterator[Span]:
    """A span around one tool call, retries and all."""
    attributes: dict[str, str | int] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": ref.name,
        "mcp.server.name": ref.server,
    }
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    if ref.episode_id is not None:
        attributes[EPISODE_ATTRIBUTE] = ref.episode_id
    if revision is not None:
        attributes[BASE_ATTRIBUTE] = revision
    with _tracer.start_as_current_span(f"execute_tool {ref.name}", attributes=attributes) as span:
        yield span


def note_result(span: Span, result: Any) -> None:
    """What a call's result adds to its span."""
    if not span.is_recording() or not isinstance(result, CallToolResult):
        return
    meta = result.meta or {}
    for key, attribute in (
        (EPISODE_ID, EPISODE_ATTRIBUTE),
        (REVISION, REVISION_ATTRIBUTE),
        (REPLAYED, REPLAYED_ATTRIBUTE),
    ):
        if isinstance(meta.get(key), (str, int)):
            span.set_attribute(attribute, meta[key])
    if result.is_error:
        span.set_status(StatusCode.ERROR)
