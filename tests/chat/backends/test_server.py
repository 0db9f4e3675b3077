"""The connection to a server: what goes wrong is told in one line, and what passes is tried again."""

import asyncio
import gc
import socket
from collections.abc import Callable
from typing import Any

import pytest

from langchain_envscaler.chat.backends.base import ContextOverflow
from langchain_envscaler.chat.model import ChatEnvScaler
from langchain_envscaler.errors import EnvScalerError, InfrastructureError, NotFoundError, UsageError

Make = Callable[..., ChatEnvScaler]
OK = {"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}
VLLM_OVERFLOW = (
    "maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens."
)


def fail(model: ChatEnvScaler) -> EnvScalerError:
    with pytest.raises(EnvScalerError) as caught:
        model.invoke("hi")
    with pytest.raises(EnvScalerError) as caught_too:
        asyncio.run(model.ainvoke("hi"))
    assert type(caught.value) is type(caught_too.value)
    assert str(caught.value).split("(")[0] == str(caught_too.value).split("(")[0]
    assert "\n" not in f"{caught.value}{caught_too.value}"
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (404, {"error": {"message": "The model `x` does not exist."}}, NotFoundError, "it offers tiny"),
        (401, {"error": {"message": "bad key"}}, UsageError, "give api_key=... or set ENVSCALER_API_KEY"),
        (400, {"error": {"message": VLLM_OVERFLOW}}, ContextOverflow, "4096 tokens. However, your prompt"),
        (
            400,
            {"error": {"type": "exceed_context_size_error", "message": "too long: 50 > 40", "n_ctx": 40}},
            ContextOverflow,
            "50 > 40",
        ),
        (400, {"detail": "top_p\nis odd"}, UsageError, "refused the request (400): top_p is odd"),
        (422, "no JSON at all", UsageError, "no JSON at all"),
        (500, {"error": "it broke"}, InfrastructureError, "failed (500): it broke"),
        (503, "", InfrastructureError, "failed (503): Service Unavailable"),
    ],
)
def test_a_refusal_is_told_in_one_line(
    server: Any, chat: Make, status: int, body: Any, kind: type[Exception], said: str
) -> None:
    server.refuse(status, body)
    error = fail(chat(model="x"))
    assert type(error) is kind
    assert said in str(error)


def test_an_address_without_its_path_is_told(server: Any, chat: Make) -> None:
    server.refuse(404, "Not Found")
    server.models = []
    error = fail(chat(base_url=server.url.removesuffix("/v1")))
    assert f"is it at {server.url}?" in str(error)


def test_a_server_that_is_down_is_told_with_its_address(chat: Make) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        error = fail(chat(base_url=address, max_retries=1))
    assert isinstance(error, InfrastructureError)
    assert f"no server answers at {address}" in str(error)


def test_an_address_that_is_none_is_wrong_use(chat: Make) -> None:
    assert "expected an address such as" in str(fail(chat(base_url="localhost:8000")))


def test_a_server_that_gives_no_sign_is_not_waited_for_forever(chat: Make) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        error = fail(chat(base_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1", timeout=0.2))
    assert isinstance(error, InfrastructureError)
    assert "give it more with timeout=" in str(error)


def test_an_answer_that_breaks_off_is_a_failure_never_an_answer(server: Any, chat: Make) -> None:
    server.break_off({"choices": [{"delta": {"content": "half an ans"}}]})
    assert "broke off" in str(fail(chat()))
    server._replies.clear()
    server.reply({"choices": [{"delta": {"content": "half an ans"}}]})
    assert "ended its answer early" in str(fail(chat()))
    server._replies.clear()
    server.reply({"choices": [{"delta": {}, "finish_reason": "abort"}]})
    assert "gave its answer up (abort)" in str(fail(chat()))


def test_an_error_in_the_middle_of_a_stream_reaches_the_consumer(server: Any, chat: Make) -> None:
    server.reply({"choices": [{"delta": {"content": "half"}}]}, {"error": {"message": "out of\nmemory"}})
    assert "failed while answering: out of memory" in str(fail(chat()))


@pytest.mark.parametrize("status", [429, 502, 503])
async def test_a_busy_server_is_asked_again(server: Any, chat: Make, status: int) -> None:
    server.refuse(status, {"error": "busy"})
    server.refuse(status, {"error": "busy"})
    server.reply(OK)
    model = chat(max_retries=2)
    message = await model.ainvoke("hi")
    assert message.content == "ok"
    assert len(server.requests) == 3


def test_a_kept_connection_that_the_server_closed_is_opened_again(server: Any, chat: Make) -> None:
    server.reply(OK)
    server._replies.append(lambda handler: handler.connection.shutdown(socket.SHUT_RDWR))
    server.reply(OK)
    model = chat(max_retries=1)
    assert model.invoke("hi").content == "ok"
    assert model.invoke("hi").content == "ok"
    assert len(server.requests) == 3


def test_one_model_serves_several_event_loops_and_threads_and_leaves_no_connection_open(
    server: Any, chat: Make
) -> None:
    server.reply(OK)
    model = chat()
    for _ in range(2):
        assert asyncio.run(model.ainvoke("hi")).content == "ok"
    assert [message.content for message in model.batch(["a"] * 8)] == ["ok"] * 8
    gc.collect()  # a connection left open would warn, and warnings are errors here


async def test_concurrent_requests_are_sent_at_once(server: Any, chat: Make) -> None:
    server.reply(OK)
    model = chat()
    messages = await asyncio.gather(*(model.ainvoke(str(number)) for number in range(20)))
    assert {message.content for message in messages} == {"ok"}
    assert {request.body["messages"][0]["content"] for request in server.requests} == set(map(str, range(20)))
