"""Metrics, logs and spans: what they hold, and what they must not."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan
from starlette.types import ASGIApp

from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.mcp import telemetry
from langchain_envscaler.mcp.app import create_app


async def _get(app: ASGIApp, method: str, path: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        return await http.request(method, path)


async def test_labels_do_not_grow_with_what_clients_send(service: EpisodeService) -> None:
    app = create_app(service)
    for number in range(5):
        await _get(app, "GET", f"/episodes/{number}")
        await _get(app, "GET", f"/nowhere/{number}")
        await _get(app, f"METHOD{number}", "/environments")
    text = (await _get(app, "GET", "/metrics")).text
    counted = [line for line in text.splitlines() if line.startswith("envscaler_http_requests_total")]
    assert sorted(counted) == [
        'envscaler_http_requests_total{method="GET",route="/episodes/{episode_id}",status="404"} 5.0',
        'envscaler_http_requests_total{method="GET",route="unknown",status="404"} 5.0',
        'envscaler_http_requests_total{method="other",route="/environments",status="405"} 5.0',
    ]


async def test_every_response_has_an_id_that_the_log_repeats(
    service: EpisodeService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "langchain_envscaler.access"):
        response = await _get(create_app(service), "GET", "/environments?token=hush")
    (record,) = caplog.records
    line = json.loads(telemetry.JsonFormatter().format(record))
    assert line["request_id"] == response.headers["x-request-id"]
    assert (line["route"], line["status"], line["principal"]) == ("/environments", 422, None)
    assert "hush" not in json.dumps(line)


async def test_the_access_log_can_be_off(service: EpisodeService, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "langchain_envscaler.access"):
        await _get(create_app(service, access_log=False), "GET", "/environments")
    assert caplog.records == []


def test_a_logged_line_is_one_line_of_json() -> None:
    try:
        raise ValueError("several\nlines")
    except ValueError as error:
        record = logging.LogRecord(
            "name", logging.ERROR, "", 0, "text %s", ("x\ny",), (ValueError, error, None)
        )
    (line,) = telemetry.JsonFormatter().format(record).splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["event"]) == ("error", "text x\ny")
    assert "several\nlines" in entry["exception"]


class _Tracer:
    """Records the spans that are made with it."""

    def __init__(self) -> None:
        self.spans: list[_Span] = []

    @contextmanager
    def start_as_current_span(self, name: str, **_: Any) -> Iterator["_Span"]:
        span = _Span(name)
        self.spans.append(span)
        yield span


class _Span(NonRecordingSpan):
    def __init__(self, name: str) -> None:
        super().__init__(INVALID_SPAN.get_span_context())
        self.name = name
        self.attributes: dict[str, Any] = {}

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value


async def test_each_request_is_a_span(service: EpisodeService, monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = _Tracer()
    monkeypatch.setattr(telemetry, "_tracer", tracer)
    await _get(create_app(service), "GET", "/episodes/nothing?token=hush")
    (span,) = tracer.spans
    assert span.name == "GET /episodes/{episode_id}"
    assert span.attributes == {
        "http.request.method": "GET",
        "http.route": "/episodes/{episode_id}",
        "http.response.status_code": 422,
    }
