"""The command as a person and a script use it: whole processes, their output and exit codes."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from langchain_envscaler.cli import main
from langchain_envscaler.errors import InfrastructureError
from langchain_envscaler.graphs.toolset import MCPToolset

TASK = "library_desk-06-a-late-return"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _process(home: Path, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "langchain_envscaler", *arguments],
        env={**os.environ, "ENVSCALER_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def _envscaler(home: Path, *arguments: str, said: str | None = None) -> "subprocess.CompletedProcess[str]":
    process = _process(home, *arguments, stdin=subprocess.PIPE)
    try:
        out, err = process.communicate(said, timeout=100)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def _json(home: Path, *arguments: str, said: str | None = None) -> dict[str, Any]:
    done = _envscaler(home, *arguments, "--json", said=said)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_solves_a_task_over_mcp_and_shows_its_checks(home: Path) -> None:
    done = _envscaler(home, "run", "library_desk", "--task", TASK)
    assert done.returncode == 0, done.stderr
    assert "reference policy" in done.stdout
    assert "→ check_in(" in done.stdout
    assert "Reward 1.0" in done.stdout
    assert "✘" not in done.stdout
    assert "envscaler chat --thread library_desk-" in done.stdout


def test_a_run_as_json_names_its_thread_its_checks_and_what_changed(home: Path) -> None:
    result = _json(home, "run", "library_desk", "--task", TASK, "--thread", "mine")
    assert (result["reward"], result["thread_id"], result["task_id"]) == (1.0, "mine", TASK)
    assert {check["passed"] for check in result["checks"]} == {True}
    assert result["answer"].startswith("Task Completed")
    assert {change["op"] for change in result["state_changes"]} <= {"add", "remove", "replace"}
    again = _json(home, "run", "library_desk", "--thread", "mine")
    assert again == result


def test_a_run_that_was_killed_goes_on_where_it_was(home: Path) -> None:
    whole = _json(home, "run", "library_desk", "--task", "library_desk-15-monday-morning")
    arguments = ("run", "library_desk", "--task", "library_desk-15-monday-morning", "--thread", "cut")
    process = _process(home, *arguments, start_new_session=True)
    _wait_for_checkpoints(home / "threads.sqlite", "cut", 6, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    resumed = _json(home, "run", "library_desk", "--thread", "cut")
    assert resumed["reward"] == 1.0
    assert resumed["steps"] == whole["steps"]
    assert resumed["state_changes"] == whole["state_changes"]


def _wait_for_checkpoints(file: Path, thread: str, count: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be killed"
        if file.exists():
            with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
                try:
                    found = connection.execute(
                        "SELECT count(*) FROM checkpoints WHERE thread_id = ?", (thread,)
                    ).fetchone()[0]
                except sqlite3.OperationalError:
                    found = 0
            connection.close()
            if found >= count:
                return
        time.sleep(0.01)
    pytest.fail("the run wrote no checkpoints within a minute")


def test_a_conversation_goes_on_in_a_new_process(home: Path) -> None:
    first = _json(home, "chat", "library_desk", "--task", TASK, "--thread", "talk", "-m", "Please do it.")
    assert first["turns"][0]["answer"].startswith("Task Completed")
    assert first["turns"][0]["calls"][0]["result"].startswith("{'success': True")
    second = _json(home, "chat", "--thread", "talk", said="And now?\n/quit\n")
    assert second["episode_id"] == first["episode_id"]
    assert [turn["user"] for turn in second["turns"]] == ["And now?"]
    assert second["turns"][0]["calls"] == []


def test_the_environments_are_listed_and_shown(home: Path, shared: Path) -> None:
    listed = _json(home, "envs", "list", "--data", str(shared / "envscaler"))
    rows = {row["env_id"]: row for row in listed["environments"]}
    assert len(rows) == 20
    assert listed["problems"] == []
    assert rows["env_143_rl"]["tools"] > 0
    shown = _json(home, "envs", "show", "library_desk")
    assert len(shown["tools"]) == rows["library_desk"]["tools"]
    assert len(shown["scenarios"]) == rows["library_desk"]["scenarios"]


@pytest.fixture
def http_server(home: Path) -> Iterator[str]:
    process = _process(home, "serve", "--http", "--port", "0", "--json")
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_environments_are_served_over_http(http_server: str, home: Path) -> None:
    request = Request(
        f"{http_server}/episodes",
        data=json.dumps({"env_id": "smart_home"}).encode(),
        headers={"content-type": "application/json"},
    )
    with urlopen(request, timeout=30) as response:
        episode = json.load(response)
    assert episode["env_id"] == "smart_home"
    busy = _envscaler(home, "serve", "--http", "--port", http_server.rpartition(":")[2])
    assert busy.returncode == 2
    assert "in use" in busy.stderr
    assert len(busy.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "libary_desk"), 2, "nearest: library_desk"),
        (("run", "library_desk", "--task", "none"), 2, "task of environment 'library_desk'"),
        (("run", "library_desk", "--data", "nowhere"), 2, "found nothing at nowhere"),
        (("chat", "--thread", "none"), 2, "none named 'none'"),
        (("chat",), 2, "ENV or --thread"),
        (("serve",), 2, "give ENV"),
        (("serve", "library_desk", "--http"), 2, "POST /episodes"),
        (("serve", "nothing"), 2, "'nothing'"),
        (("envs", "show", "nothing"), 2, "'nothing'"),
    ],
)
def test_wrong_use_is_one_clear_line(
    home: Path,
    arguments: tuple[str, ...],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ENVSCALER_HOME", str(home))
    monkeypatch.setattr(sys, "argv", ["envscaler", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code == code
    assert said in shown.err
    assert len(shown.err.strip().splitlines()) == 1
    assert shown.out == ""


def test_a_server_that_is_down_is_named_in_one_line(home: Path) -> None:
    done = _envscaler(home, "run", "library_desk", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_error_is_told_to_scripts_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["envscaler", "run", "nothing", "--json"])
    with pytest.raises(SystemExit):
        main()
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "NotFoundError"


def test_debug_shows_the_traceback(home: Path) -> None:
    done = _envscaler(home, "--debug", "run", "nothing")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_file_of_threads_that_is_none_is_named(home: Path) -> None:
    home.mkdir()
    (home / "threads.sqlite").write_text("these are not checkpoints, however long one looks at them" * 20)
    done = _envscaler(home, "run", "library_desk", "--thread", "x")
    assert done.returncode == 2
    assert "threads.sqlite" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_file_of_threads_of_another_version_is_named(home: Path) -> None:
    home.mkdir()
    with sqlite3.connect(home / "threads.sqlite") as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, state BLOB)")
    connection.close()
    done = _envscaler(home, "run", "library_desk", "--thread", "x")
    assert done.returncode == 2
    assert "another" in done.stderr


def test_the_package_imports_no_engine() -> None:
    code = (
        "import sys, langchain_envscaler; "
        "print([m for m in ('torch', 'transformers', 'vllm', 'langchain', 'mcp') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_server_that_cannot_open_its_episode_tells_the_client_why(home: Path) -> None:
    home.mkdir()
    store = ["--store", str(home / "episodes.sqlite"), "--episode-id", "mine"]
    with MCPToolset(_served("library_desk", store), required=True) as toolset:
        assert toolset.get_tools()
    other = MCPToolset(_served("smart_home", store), required=True)
    with pytest.raises(InfrastructureError, match="episode of environment 'smart_home', found 'mine'"):
        other.open()
    other.close()


def _served(env: str, options: list[str]) -> dict[str, Any]:
    arguments = ["-m", "langchain_envscaler", "serve", env, *options]
    return {"mcpServers": {"env": {"command": sys.executable, "args": arguments}}}
