"""Traces tell of the model, the tools, the episode and its revision, by callbacks and OpenTelemetry."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from langchain_envscaler import create_tool_agent

GO = {"messages": [HumanMessage("go")]}


class Runs(BaseTracer):
    """Keeps what LangSmith would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        waiting = [run]
        while waiting:
            one = waiting.pop()
            self.runs.append(one)
            waiting += one.child_runs


@pytest.fixture(scope="module")
def exporter() -> Iterator[Any]:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="skipped: opentelemetry-sdk is not installed")
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, sdk.TracerProvider):
        provider = sdk.TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter
    exporter.shutdown()


def model(scripted: Any) -> Any:
    usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    return scripted([("append", {"word": "a"})], [("show", {})], AIMessage("Done.", usage_metadata=usage))


async def test_callbacks_are_told_the_episode_and_the_revision_of_each_tool_call(service, scripted):
    episode = service.start("words")
    tracer = Runs()
    await create_tool_agent(model(scripted), episode).ainvoke(GO, {"callbacks": [tracer]})
    tools = sorted((run for run in tracer.runs if run.run_type == "tool"), key=lambda run: run.start_time)
    assert [run.name for run in tools] == ["append", "show"]
    assert [run.metadata["envscaler/revision"] for run in tools] == [0, 1]
    assert {run.metadata["envscaler/episode_id"] for run in tools} == {episode.episode_id}
    assert tools[0].metadata["mcp_server"] == "words"
    assert tools[0].outputs["output"].artifact["meta"]["envscaler/revision"] == 1
    assert sum(run.run_type in ("llm", "chat_model") for run in tracer.runs) == 3


async def test_spans_tell_of_models_tools_and_revisions(service, scripted, exporter):
    episode = service.start("words")
    exporter.clear()
    await create_tool_agent(model(scripted), episode).ainvoke(GO)
    spans = {span.name: dict(span.attributes) for span in exporter.get_finished_spans()}
    append = spans["execute_tool append"]
    assert append["gen_ai.tool.name"] == "append"
    assert append["envscaler.episode_id"] == episode.episode_id
    assert (append["envscaler.base_revision"], append["envscaler.revision"]) == (0, 1)
    assert spans["execute_tool show"]["envscaler.base_revision"] == 1
    chat = spans["chat ScriptedChatModel"]
    assert chat["gen_ai.usage.input_tokens"] == 9


async def test_the_servers_spans_belong_to_the_tools(local, scripted, exporter):
    exporter.clear()
    await create_tool_agent(scripted([("show", {})], "Done."), local()).ainvoke(GO)
    spans = exporter.get_finished_spans()
    tool = next(span for span in spans if span.name == "execute_tool show")
    below = [span for span in spans if span.parent and span.parent.span_id == tool.context.span_id]
    assert below
    assert all(span.context.trace_id == tool.context.trace_id for span in below)


def test_a_failed_call_is_marked_in_synchronous_code_too(local, scripted, exporter):
    from opentelemetry.trace import StatusCode

    exporter.clear()
    create_tool_agent(scripted([("fail", {"reason": "x"})], "Done."), local()).invoke(GO)
    tool = next(span for span in exporter.get_finished_spans() if span.name == "execute_tool fail")
    assert tool.status.status_code is StatusCode.ERROR
