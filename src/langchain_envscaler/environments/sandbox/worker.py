"""The loop of a confined child: a request in, a reply out, one at a time."""

import json
import os
from collections.abc import Callable
from typing import Any

from langchain_envscaler.environments.sandbox.checking import StateUnreadableError, run_check
from langchain_envscaler.environments.sandbox.entropy import Entropy
from langchain_envscaler.environments.sandbox.environment import Environment, compile_source, error_text
from langchain_envscaler.environments.sandbox.frames import HEADER, frame

__all__ = ["serve"]

# The code of an environment is loaded with the same randomness whatever the episode's seed, so that a process
# can load it before the episode is known.
_AT_LOAD = ("", 0)

Reply = tuple[dict[str, Any], bytes]
Request = dict[str, Any]


def serve(fd: int, *, is_seeded: bool) -> None:
    """Answer requests from a descriptor until it is closed."""
    # Bound here, so that code which replaces functions of modules does not change the protocol.
    read, write, loads = os.read, os.write, json.loads
    worker = _Worker(Entropy() if is_seeded else None)
    while True:
        header = _read_exactly(read, fd, HEADER.size)
        if header is None:
            return
        text_length, blob_length = HEADER.unpack(header)
        text = _read_exactly(read, fd, text_length)
        blob = _read_exactly(read, fd, blob_length)
        if text is None or blob is None:
            return
        rest = memoryview(frame(*worker.answer(loads(text), blob)))
        while rest:
            rest = rest[write(fd, rest) :]


def _read_exactly(read: Callable[[int, int], bytes], fd: int, count: int) -> bytes | None:
    """So many bytes, or None if the other end is closed before."""
    if count == 0:
        return b""
    data = read(fd, count)
    if len(data) == count:
        return data
    parts = [data]
    missing = count - len(data)
    while missing:
        if not data:
            return None
        data = read(fd, missing)
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


class _Worker:
    """What this child can be asked for."""

    def __init__(self, entropy: Entropy | None) -> None:
        self._entropy = entropy
        self._environment: Environment | None = None
        self._operations: dict[str, Callable[[Request, bytes], Reply]] = {
            "compile": self._compile,
            "load": self._load,
            "construct": self._construct,
            "restore": self._restore,
            "call": self._call,
            "state": self._state,
            "check": self._check,
        }

    def answer(self, request: Request, blob: bytes) -> Reply:
        try:
            if self._entropy is not None:
                self._entropy.begin(*request.get("clock", _AT_LOAD))
            return self._operations[request["do"]](request, blob)
        except StateUnreadableError as error:
            return {"ok": False, "error": str(error), "unreadable": True}, b""
        except BaseException as error:
            return {"ok": False, "error": error_text(error)[:2000]}, b""

    def _compile(self, request: Request, _: bytes) -> Reply:
        return {"ok": True}, compile_source(request["source"])

    def _load(self, request: Request, blob: bytes) -> Reply:
        self._environment = Environment(blob, request["class_name"])
        return {"ok": True}, b""

    def _construct(self, request: Request, _: bytes) -> Reply:
        return {"ok": True}, self._loaded().construct(request["init_config"])

    def _restore(self, _: Request, blob: bytes) -> Reply:
        self._loaded().restore(blob)
        return {"ok": True}, b""

    def _call(self, request: Request, _: bytes) -> Reply:
        environment = self._loaded()
        outcome = environment.call(request["name"], request["arguments"], request["max_chars"])
        state = environment.changed_state()
        message = {
            "ok": True,
            "text": outcome.text,
            "data": outcome.data,
            "is_error": outcome.is_error,
            "changed": state is not None,
        }
        if outcome.log:
            message["log"] = outcome.log
        return message, state or b""

    def _state(self, _: Request, __: bytes) -> Reply:
        return {"ok": True, "state": self._loaded().state_form()}, b""

    def _check(self, request: Request, blob: bytes) -> Reply:
        first, second = request["final_length"], request["final_length"] + request["initial_length"]
        passed, reason = run_check(request["source"], blob[:first], blob[first:second], blob[second:])
        return {"ok": True, "passed": passed, "reason": reason}, b""

    def _loaded(self) -> Environment:
        if self._environment is None:
            raise LookupError("no environment is loaded in this process")
        return self._environment
