"""A client process that survives its own death: it plays a script of calls and writes down what each gave.

Started again with the same notes, it goes on behind the last of them; a call whose answer it does not know is
made again with the same identity. It needs the standard library only, so that it starts in no time.

Run with one argument, JSON: `servers` (MCP addresses), `turns` (the server that each call goes to), `calls`
(`name` and `arguments`, where `{"of": CALL, "key": KEY}` stands for a part of what an earlier call gave),
`notes` (a path) and `seconds` (how long a call may take, restarts of servers included).
"""

import http.client
import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
    # Of a session that was opened before a restart, or at another server.
    "mcp-session-id": "0" * 32,
}
INTERNAL_ERROR = -32603
PAUSE_SECONDS = 0.02


class TryAgain(Exception):
    """No answer; whether the call was made is not known."""


def main(plan: dict[str, Any]) -> None:
    notes = Path(plan["notes"])
    answers = _answers(notes)
    with notes.open("a") as file:
        for index in range(len(answers), len(plan["calls"])):
            print(index, flush=True)
            request = _request(index, plan["calls"][index], answers)
            answers.append(_answer(plan, plan["turns"][index], request))
            file.write(json.dumps(answers[-1]) + "\n")
            file.flush()


def _answers(notes: Path) -> list[dict[str, Any]]:
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [json.loads(line) for line in lines]


def _request(index: int, call: dict[str, Any], answers: list[dict[str, Any]]) -> dict[str, Any]:
    arguments = {
        name: answers[value["of"]]["data"][value["key"]] if isinstance(value, dict) else value
        for name, value in call["arguments"].items()
    }
    revision = answers[-1]["revision"] if answers else 0
    meta = {"envscaler/call_id": f"call-{index}", "envscaler/revision": revision}
    params = {"name": call["name"], "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": index, "method": "tools/call", "params": params}


def _answer(plan: dict[str, Any], turn: int, request: dict[str, Any]) -> dict[str, Any]:
    """Ask until there is an answer, one server after another."""
    deadline = time.monotonic() + plan["seconds"]
    while True:
        try:
            result = _asked(plan["servers"][turn % len(plan["servers"])], request)
        except (OSError, http.client.HTTPException, TryAgain) as error:
            if time.monotonic() > deadline:
                sys.exit(f"no answer to {request}: {error!r}")
            time.sleep(PAUSE_SECONDS)
            turn += 1
            continue
        meta = result["_meta"]
        return {
            "data": result.get("structuredContent"),
            "revision": meta["envscaler/revision"],
            "replayed": meta["envscaler/replayed"],
        }


def _asked(server: str, request: dict[str, Any]) -> dict[str, Any]:
    address = urlsplit(server)
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    try:
        connection.request("POST", address.path, json.dumps(request), HEADERS)
        response = connection.getresponse()
        body = response.read().decode()
    finally:
        connection.close()
    if response.status >= 500:
        raise TryAgain(body)
    if response.status != 200:
        sys.exit(f"answered with {response.status}: {body}")
    if response.headers.get_content_type() == "text/event-stream":
        data = [line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:")]
        if not data:
            raise TryAgain("the stream ended")
        body = data[-1]
    message = json.loads(body)
    if "error" in message:
        if message["error"]["code"] == INTERNAL_ERROR:
            raise TryAgain(message["error"])
        sys.exit(f"answered with {message['error']}")
    result: dict[str, Any] = message["result"]
    return result


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
