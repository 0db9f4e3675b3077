"""The graphs that langgraph.json names: a look at their schemas starts nothing, a run solves a task."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from langgraph_sdk import get_sync_client

ROOT = Path(__file__).parents[2]
NAMES = ["agent", "environment_agent", "conversation"]
STARTUP_SECONDS = 90.0

LOOK = """
import importlib.util, json, os, subprocess, threading

started = []
real = subprocess.Popen.__init__
def noted(self, *args, **options):
    started.append(args)
    real(self, *args, **options)
subprocess.Popen.__init__ = noted

schemas = {}
for name, target in json.load(open("langgraph.json"))["graphs"].items():
    path, _, attribute = target.partition(":")
    spec = importlib.util.spec_from_file_location("deployed_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph = getattr(module, attribute)()
    schemas[name] = {
        "input": graph.get_input_jsonschema(),
        "output": graph.get_output_jsonschema(),
        "context": graph.get_context_jsonschema(),
        "drawing": graph.get_graph().draw_mermaid(),
    }
home = os.environ["ENVSCALER_HOME"]
print(json.dumps({
    "schemas": schemas,
    "processes": len(started),
    "threads": [one.name for one in threading.enumerate() if one is not threading.main_thread()],
    "files": os.path.exists(home),
}))
"""


@pytest.fixture(scope="module")
def look(tmp_path_factory) -> dict:
    """What a look at all graphs' schemas finds and leaves behind."""
    home = tmp_path_factory.mktemp("look") / "home"
    environ = {**os.environ, "ENVSCALER_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_all_graphs_are_named(look):
    assert list(look["schemas"]) == NAMES


def test_a_look_at_the_schemas_starts_nothing(look):
    assert look["processes"] == 0
    assert look["threads"] == []
    assert look["files"] is False


@pytest.mark.parametrize("name", ["environment_agent", "conversation"])
def test_the_context_is_a_form(look, name):
    form = look["schemas"][name]["context"]["properties"]
    assert {"env_id", "task_id", "seed", "model", "base_url", "temperature"} <= set(form)
    assert form["env_id"]["default"] == "library_desk"
    assert all("description" in field for field in form.values())


def test_private_counters_are_not_in_the_schemas(look):
    assert "turn" not in look["schemas"]["agent"]["output"]["properties"]
    assert "episodes" in look["schemas"]["agent"]["output"]["properties"]


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """A LangGraph server over langgraph.json, without a network beyond this machine."""
    command = next(
        (one for one in (ROOT / ".cache/langgraph-dev/bin/langgraph", shutil.which("langgraph")) if one), None
    )
    if command is None or not Path(command).exists():
        pytest.skip(
            "skipped: the command langgraph is missing; make .cache/langgraph-dev a virtual environment with "
            "langgraph-cli[inmem] and this package in it"
        )
    from socket import create_server

    with create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    environ = {**os.environ, "ENVSCALER_HOME": str(folder / "home"), "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    environ["PATH"] = f"{Path(command).parent}{os.pathsep}{environ['PATH']}"
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        [command, "dev", "--no-browser", "--no-reload", "--port", str(port)],
        cwd=ROOT,
        env=environ,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + STARTUP_SECONDS
        while True:
            try:
                if httpx2.get(f"{url}/ok", timeout=2).is_success:
                    break
            except httpx2.HTTPError:
                pass
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        log.close()


@pytest.mark.parametrize("name", ["environment_agent", "conversation"])
def test_a_run_through_the_sdk_solves_a_bundled_task(server, name):
    with get_sync_client(url=server) as client:
        thread = client.threads.create()
        state = client.runs.wait(thread["thread_id"], name, input={"messages": []}, durability="sync")
    assert state["task"]["task_id"] == "library_desk-01-return-a-book"
    assert state["evaluation"]["reward"] == 1.0


def test_the_servers_schemas_show_the_context(server):
    with get_sync_client(url=server) as client:
        assistant = client.assistants.search(graph_id="environment_agent")[0]
        schemas = client.assistants.get_schemas(assistant["assistant_id"])
    assert "env_id" in schemas["context_schema"]["properties"]
