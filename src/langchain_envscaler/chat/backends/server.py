"""The connection to an OpenAI-compatible server: requests out, the events of a streamed answer in.

It knows HTTP and nothing of what is asked. Leaving a stream closes its connection, which ends the generation.
"""

import asyncio
import itertools
import json
import time
import weakref
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any, TypeAlias

import httpx2

from langchain_envscaler.chat.backends.server_errors import Refusal, refusal_error, transport_error
from langchain_envscaler.errors import InfrastructureError, UsageError

__all__ = ["Event", "Server"]

Event: TypeAlias = dict[str, Any]
"""One event of a streamed answer, as the server sent it."""

_CONNECT_SECONDS = 10.0
_READ_SECONDS = 600.0
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 8.0
# What may be gone at the next try: a server that is busy or starting, a kept connection that it had closed.
_PASSING = frozenset({429, 502, 503})
_BROKEN = (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)


class Server:
    """One server; any thread and any event loop may use it.

    Args:
        base_url: Its address, usually ending in `/v1`.
        api_key: Sent as a bearer token.
        headers: Sent with each request.
        timeout: Seconds that may pass without a sign of the server; None: ten minutes.
        max_retries: How often a request is sent again that did not reach the server, or found it busy.

    Raises:
        UsageError: The address is none of HTTP.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        max_retries: int = 2,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise UsageError(
                f"base_url: expected an address such as http://localhost:8000/v1, got {base_url!r}"
            )
        self.base_url = base_url.rstrip("/")
        self._max_retries = max_retries
        authorization = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._options: dict[str, Any] = {
            "headers": {**authorization, **(headers or {})},
            "timeout": httpx2.Timeout(timeout or _READ_SECONDS, connect=_CONNECT_SECONDS),
            "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        }
        self._client: httpx2.Client | None = None
        # A connection belongs to the event loop that opened it, so each loop has a client of its own.
        self._loop_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClient] = (
            weakref.WeakKeyDictionary()
        )

    def events(self, path: str, body: Mapping[str, Any]) -> Generator[Event]:
        """The events of a streamed answer.

        Raises:
            Refusal: The server answered with an error status.
            InfrastructureError: It cannot be reached, or broke off.
        """
        response = self._open(path, body)
        try:
            for line in response.iter_lines():
                event = _event(line, self.base_url)
                if event is not None:
                    yield event
        except httpx2.TransportError as error:
            raise transport_error(error, self.base_url) from error
        finally:
            response.close()

    async def aevents(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Event]:
        """As :meth:`events`, for asyncio."""
        response = await self._aopen(path, body)
        try:
            async for line in response.aiter_lines():
                event = _event(line, self.base_url)
                if event is not None:
                    yield event
        except httpx2.TransportError as error:
            raise transport_error(error, self.base_url) from error
        finally:
            await response.aclose()

    def error(self, refusal: Refusal, model: str) -> Exception:
        """The error to raise for a refusal; asks the server for its models where it does not know one."""
        return refusal_error(
            refusal, self.base_url, model, self._model_names() if refusal.status == 404 else None
        )

    async def aerror(self, refusal: Refusal, model: str) -> Exception:
        """As :meth:`error`, for asyncio."""
        models = await asyncio.to_thread(self._model_names) if refusal.status == 404 else None
        return refusal_error(refusal, self.base_url, model, models)

    def models(self) -> list[dict[str, Any]]:
        """The models that the server offers; empty where it does not tell."""
        try:
            entries = self._thread_client().get(f"{self.base_url}/models").json()["data"]
            return [entry for entry in entries if isinstance(entry, dict)]
        except (httpx2.HTTPError, ValueError, KeyError, TypeError):
            return []

    def close(self) -> None:
        """Closes the connections that threads opened; those of an event loop close with the loop."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _open(self, path: str, body: Mapping[str, Any]) -> httpx2.Response:
        client = self._thread_client()
        for attempt in itertools.count():
            try:
                response = client.send(self._request(client, path, body), stream=True)
            except httpx2.TransportError as error:
                self._check_retry(error, attempt)
            else:
                if response.status_code < 400:
                    return response
                response.read()
                self._check_retry(Refusal.of(response), attempt)
            time.sleep(_pause(attempt))
        raise AssertionError("unreachable")

    async def _aopen(self, path: str, body: Mapping[str, Any]) -> httpx2.Response:
        client = await self._loop_client()
        for attempt in itertools.count():
            try:
                response = await client.send(self._request(client, path, body), stream=True)
            except httpx2.TransportError as error:
                self._check_retry(error, attempt)
            else:
                if response.status_code < 400:
                    return response
                await response.aread()
                self._check_retry(Refusal.of(response), attempt)
            await asyncio.sleep(_pause(attempt))
        raise AssertionError("unreachable")

    def _request(
        self, client: httpx2.Client | httpx2.AsyncClient, path: str, body: Mapping[str, Any]
    ) -> httpx2.Request:
        return client.build_request("POST", self.base_url + path, json=body)

    def _check_retry(self, error: Refusal | httpx2.TransportError, attempt: int) -> None:
        """Raises the error unless the request may be sent again."""
        is_passing = error.status in _PASSING if isinstance(error, Refusal) else isinstance(error, _BROKEN)
        if is_passing and attempt < self._max_retries:
            return
        if isinstance(error, Refusal):
            raise error
        raise transport_error(error, self.base_url) from error

    def _model_names(self) -> list[str]:
        return [str(entry.get("id")) for entry in self.models()]

    def _thread_client(self) -> httpx2.Client:
        client = self._client
        if client is None:
            client = self._client = httpx2.Client(**self._options)
            weakref.finalize(self, client.close)
        return client

    async def _loop_client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        entry = self._loop_clients.get(loop)
        if entry is None:
            entry = self._loop_clients[loop] = _LoopClient(self._options)
        return await entry.client()


class _LoopClient:
    """A client that closes when its event loop ends."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._client = httpx2.AsyncClient(**options)
        # A loop that ends closes the asynchronous generators that still wait in it.
        self._holder = self._hold()
        self._is_held = False

    async def client(self) -> httpx2.AsyncClient:
        if not self._is_held:
            self._is_held = True
            await anext(self._holder)
        return self._client

    async def _hold(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self._client.aclose()


def _pause(attempt: int) -> float:
    """Seconds to wait after a failed try."""
    return min(_FIRST_PAUSE_SECONDS * 2.0**attempt, _LONGEST_PAUSE_SECONDS)


def _event(line: str, base_url: str) -> Event | None:
    """The event in a line of the stream; None for a line that holds none."""
    if not line.startswith("data:"):
        return None
    data = line[5:].strip()
    if data == "[DONE]":
        return None
    try:
        event = json.loads(data)
    except ValueError as error:
        raise InfrastructureError(
            f"the server at {base_url} sent an event that is no JSON: {data[:80]!r}"
        ) from error
    if not isinstance(event, dict):
        raise InfrastructureError(f"the server at {base_url} sent an event that is no object: {data[:80]!r}")
    failure = event.get("error")
    if failure:
        message = failure.get("message") if isinstance(failure, dict) else failure
        raise InfrastructureError(
            f"the server at {base_url} failed while answering: {' '.join(str(message).split())}"
        )
    return event
