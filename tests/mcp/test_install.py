"""Environments in the configurations of desktop clients, and the servers that those clients then start."""

import json
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from langchain_envscaler.cli import app
from langchain_envscaler.errors import (
    DataError,
    EnvScalerError,
    InfrastructureError,
    NotFoundError,
    UsageError,
)
from langchain_envscaler.mcp import install as module
from langchain_envscaler.mcp.client_kinds import Client
from langchain_envscaler.mcp.clients import StdioServerEntry, parse_clients
from langchain_envscaler.mcp.config_edit import remove_entry, set_entry
from langchain_envscaler.mcp.config_text import decode_config
from langchain_envscaler.mcp.install import config_path, episode_of, install, server_entry, uninstall

SECONDS = 60.0
LINUX: Mapping[str, str] = {"HOME": "/home/ann"}
MAC: Mapping[str, str] = {"HOME": "/Users/ann"}
WINDOWS: Mapping[str, str] = {
    "USERPROFILE": r"C:\Users\ann",
    "APPDATA": r"C:\Users\ann\AppData\Roaming",
    "HOME": "/c/ann",
}


@pytest.mark.parametrize(
    ("client", "platform", "environ", "path"),
    [
        ("claude-desktop", "linux", LINUX, "/home/ann/.config/Claude/claude_desktop_config.json"),
        (
            "claude-desktop",
            "darwin",
            MAC,
            "/Users/ann/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        (
            "claude-desktop",
            "win32",
            WINDOWS,
            r"C:\Users\ann\AppData\Roaming\Claude\claude_desktop_config.json",
        ),
        ("vscode", "linux", LINUX, "/home/ann/.config/Code/User/mcp.json"),
        ("vscode", "darwin", MAC, "/Users/ann/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", WINDOWS, r"C:\Users\ann\AppData\Roaming\Code\User\mcp.json"),
        ("claude-code", "linux", LINUX, "/home/ann/.claude.json"),
        ("claude-code", "darwin", MAC, "/Users/ann/.claude.json"),
        ("claude-code", "win32", WINDOWS, r"C:\Users\ann\.claude.json"),
        ("cursor", "linux", LINUX, "/home/ann/.cursor/mcp.json"),
        ("cursor", "darwin", MAC, "/Users/ann/.cursor/mcp.json"),
        ("cursor", "win32", WINDOWS, r"C:\Users\ann\.cursor\mcp.json"),
        # Variables that move the folders.
        ("vscode", "linux", {**LINUX, "XDG_CONFIG_HOME": "/cfg"}, "/cfg/Code/User/mcp.json"),
        ("vscode", "linux", {**LINUX, "XDG_CONFIG_HOME": "cfg"}, "/home/ann/.config/Code/User/mcp.json"),
        ("vscode", "darwin", {**MAC, "XDG_CONFIG_HOME": "/cfg"}, None),
        ("claude-code", "linux", {**LINUX, "CLAUDE_CONFIG_DIR": "/cc"}, "/cc/.claude.json"),
        ("cursor", "linux", {**LINUX, "XDG_CONFIG_HOME": "/cfg"}, "/home/ann/.cursor/mcp.json"),
        (
            "vscode",
            "win32",
            {"USERPROFILE": r"D:\ann"},
            r"D:\ann\AppData\Roaming\Code\User\mcp.json",
        ),
    ],
)
def test_each_client_has_its_file_on_each_system(
    client: str, platform: str, environ: Mapping[str, str], path: str | None
) -> None:
    found = config_path(Client(client), platform=platform, environ=environ)
    if path is None:
        path = str(config_path(Client(client), platform=platform, environ=MAC))
    assert str(found) == path
    assert isinstance(found, PureWindowsPath if platform == "win32" else PurePosixPath)


@pytest.mark.parametrize(("platform", "variable"), [("linux", "HOME"), ("win32", "USERPROFILE")])
@pytest.mark.parametrize("client", list(Client))
def test_a_user_without_a_folder_is_told_to_name_the_file(
    client: Client, platform: str, variable: str
) -> None:
    with pytest.raises(UsageError, match=f"{variable}.*--config"):
        config_path(client, platform=platform, environ={})


def _entry(client: Client = Client.cursor, **options: Any) -> dict[str, Any]:
    return server_entry(client, "library_desk", store=Path("/state/episodes.sqlite"), **options)


def test_an_entry_is_read_by_our_own_reader_of_configurations() -> None:
    for client in Client:
        (read,) = parse_clients({client.section: {"desk": _entry(client)}})
        assert isinstance(read, StdioServerEntry)
        assert Path(read.command).is_absolute()
        assert read.args[:5] == ("-P", "-m", "langchain_envscaler", "serve", "library_desk")


def test_paths_in_an_entry_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    entry = server_entry(
        Client.vscode, "e", "t", store=Path("s.db"), data=[Path("data")], python="bin/python"
    )
    assert entry == {
        "type": "stdio",
        "command": str(tmp_path / "bin/python"),
        "args": [
            *("-P", "-m", "langchain_envscaler", "serve", "e", "--task", "t"),
            *("--store", str(tmp_path / "s.db"), "--episode-id", "vscode.e.t"),
            *("--data", str(tmp_path / "data")),
        ],
    }


def test_episodes_of_different_clients_environments_and_tasks_are_different() -> None:
    long = "x" * 200
    names = {
        episode_of(client, env, task)
        for client in Client
        for env in ("a", "b", "ä", "ö", "a b", "a/b")
        for task in (None, "t", "u", long, f"{long}y")
    }
    assert len(names) == len(Client) * 6 * 5
    assert all(len(name) <= 64 and name.isascii() and "/" not in name for name in names)


COMMENTED = """\
{
\t// Servers of mine.
\t"inputs": [], /* none */
\t"servers": {
\t\t"files": {"command": "files", "args": ["a"]} // keep
\t},
\t"big": 12345678901234567890.50, "u": "\\u00e9"
}
"""


def test_everything_around_the_entry_keeps_its_text() -> None:
    edited = set_entry(COMMENTED, "servers", "desk", {"command": "p"}, "mcp.json")
    head, tail = COMMENTED.split(" // keep\n")
    assert edited == f'{head}, // keep\n\t\t"desk": {{\n\t\t\t"command": "p"\n\t\t}}\n{tail}'
    assert remove_entry(edited, "servers", "desk", "mcp.json") == COMMENTED


def test_an_entry_is_replaced_in_its_place() -> None:
    edited = set_entry(COMMENTED, "servers", "files", {"command": "p"}, "mcp.json")
    assert edited == COMMENTED.replace(
        '{"command": "files", "args": ["a"]}', '{\n\t\t\t"command": "p"\n\t\t}'
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"servers": {"a": {}}, "k": 1}',
        '{"servers": {"a": {}, }}',
        '{"servers": {}}',
        '{\n  "servers": {}\n}\n',
        '{\r\n    // c\r\n    "servers": {\r\n        "a": {"x": "}//,"},\r\n    },\r\n}\r\n',
        '{"servers": {"a": {} /* , "b": {} */ }}',
    ],
)
def test_putting_in_and_taking_out_gives_the_same_text(text: str) -> None:
    edited = set_entry(text, "servers", "desk", {"command": "p", "args": ["é", '"//"']}, "mcp.json")
    assert decode_config(edited)["servers"]["desk"] == {"command": "p", "args": ["é", '"//"']}
    assert ("\r\n" in edited) == ("\r\n" in text)
    assert edited.count("\n") == 0 or "\r\n" not in text or edited.count("\n") == edited.count("\r\n")
    assert remove_entry(edited, "servers", "desk", "mcp.json") == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('az"\\/*,{}[] ', max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    others=st.dictionaries(st.text(max_size=4).filter(lambda key: key != "servers"), JSON, max_size=3),
    servers=st.none() | st.dictionaries(st.sampled_from(["a", "desk", "z"]), JSON, max_size=3),
    indent=st.sampled_from([None, 0, 1, 4, "\t"]),
    entry=st.dictionaries(st.text(max_size=4), JSON, max_size=3),
)
def test_any_configuration_keeps_its_other_values(
    others: dict[str, Any], servers: dict[str, Any] | None, indent: int | str | None, entry: dict[str, Any]
) -> None:
    config = others if servers is None else {"servers": servers, **others}
    text = json.dumps(config, indent=indent)
    edited = decode_config(set_entry(text, "servers", "desk", entry, "mcp.json"))
    assert edited == {**config, "servers": {**(servers or {}), "desk": entry}}
    assert [key for key in edited if key in config] == list(config)
    left = decode_config(remove_entry(text, "servers", "desk", "mcp.json"))
    assert left == {
        key: {name: one for name, one in value.items() if name != "desk"} if key == "servers" else value
        for key, value in config.items()
    }


def test_installing_twice_changes_nothing_the_second_time(tmp_path: Path) -> None:
    config = tmp_path / "new" / "mcp.json"
    first = install(Client.cursor, "desk", _entry(), config)
    assert (first.changed, first.backup) == (True, None)
    before = config.read_bytes()
    second = install(Client.cursor, "desk", _entry(), config)
    assert (second.changed, second.backup) == (False, None)
    assert config.read_bytes() == before
    assert [path.name for path in config.parent.iterdir()] == ["mcp.json"]


def test_the_file_as_it_was_lies_beside_it_with_the_same_permissions(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(COMMENTED)
    config.chmod(0o640)
    change = install(Client.vscode, "desk", _entry(Client.vscode), config)
    assert change.backup is not None
    assert change.backup.parent == tmp_path
    assert change.backup.read_text() == COMMENTED
    assert {stat.S_IMODE(path.stat().st_mode) for path in (config, change.backup)} == {0o640}
    assert len(list(tmp_path.iterdir())) == 2
    assert uninstall(Client.vscode, "desk", config).changed
    assert config.read_text() == COMMENTED
    assert not uninstall(Client.vscode, "desk", config).changed
    assert not uninstall(Client.vscode, "desk", tmp_path / "nowhere.json").changed


def test_a_new_file_can_be_read_by_its_user_alone(tmp_path: Path) -> None:
    change = install(Client.cursor, "desk", _entry(), tmp_path / "mcp.json")
    assert stat.S_IMODE(change.config.stat().st_mode) == 0o600


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "mcp.json"
    real.write_text("{}")
    link.symlink_to(real)
    install(Client.cursor, "desk", _entry(), link)
    assert link.is_symlink()
    assert "desk" in json.loads(real.read_text())["mcpServers"]


def test_a_byte_order_mark_is_kept(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_bytes(b"\xef\xbb\xbf{}\r\n")
    install(Client.cursor, "desk", _entry(), config)
    assert config.read_bytes().startswith(b"\xef\xbb\xbf{\r\n")
    assert "desk" in json.loads(config.read_text(encoding="utf-8-sig"))["mcpServers"]


def test_what_a_person_added_to_the_entry_stays(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    held = {**_entry(episode_id="old"), "env": {"LANG": "de"}, "disabled": True}
    config.write_text(json.dumps({"mcpServers": {"desk": held}}))
    install(Client.cursor, "desk", _entry(), config)
    found = json.loads(config.read_text())["mcpServers"]["desk"]
    assert found == {**held, **_entry()}


@pytest.mark.parametrize(
    ("text", "error", "word"),
    [
        ('{"mcpServers": {"desk": {"command": "other", "args": []}}}', UsageError, "--name"),
        ('{"mcpServers": {"desk": {"url": "http://localhost"}}}', UsageError, "--name"),
        ('{"mcpServers": {"desk": 3}}', UsageError, "--name"),
        ('{"mcpServers": []}', DataError, "object"),
        ("[]", DataError, "object"),
        ('{"mcpServers": {', DataError, "JSON"),
        ('{"a": 1, "a": 2}', DataError, "twice"),
        ("\xff", DataError, "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_as_it_is(
    tmp_path: Path, text: str, error: type[EnvScalerError], word: str
) -> None:
    config = tmp_path / "mcp.json"
    config.write_bytes(text.encode("latin-1"))
    with pytest.raises(error, match=word):
        install(Client.cursor, "desk", _entry(), config)
    assert config.read_bytes() == text.encode("latin-1")
    assert list(tmp_path.iterdir()) == [config]


def test_another_program_is_not_taken_out(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"desk": {"command": "other"}}}')
    with pytest.raises(UsageError, match="another program"):
        uninstall(Client.cursor, "desk", config)


@pytest.mark.parametrize("name", ["", "a b", "ä", "a/b", "x" * 65])
def test_a_name_that_clients_do_not_take_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--name"):
        install(Client.cursor, name, _entry(), tmp_path / "mcp.json")


def test_a_client_that_writes_at_the_same_time_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mcp.json"
    config.write_text("{}")
    edit = module.set_entry

    def meanwhile(*arguments: Any) -> str:
        config.write_text('{"theirs": 1}')
        return edit(*arguments)

    monkeypatch.setattr(module, "set_entry", meanwhile)
    with pytest.raises(InfrastructureError, match="close the client"):
        install(Client.cursor, "desk", _entry(), config)
    assert config.read_text() == '{"theirs": 1}'


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="--config"):
        install(Client.cursor, "desk", _entry(), tmp_path / "file" / "mcp.json")


@pytest.fixture
def envscaler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command as a user whose files lie in the test's folder."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("ENVSCALER_HOME", str(tmp_path / "state"))
    return lambda *arguments: CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_the_command_installs_prints_and_uninstalls(tmp_path: Path, envscaler: Callable[..., Result]) -> None:
    config = tmp_path / "mcp.json"
    options = ("install", "vscode", "library_desk", "--config", str(config), "--name", "desk")
    printed = envscaler(*options, "--print")
    assert (printed.exit_code, str(config) in printed.stderr) == (0, True)
    assert not config.exists()
    record = json.loads(envscaler(*options, "--json").stdout)
    assert (record["config"], record["backup"], record["changed"]) == (str(config), None, True)
    assert json.loads(config.read_text()) == json.loads(printed.stdout)
    assert "Already there" in envscaler(*options).stdout
    assert "Removed" in envscaler(*options, "--uninstall").stdout
    assert json.loads(config.read_text()) == {"servers": {}}
    assert "Not there" in envscaler(*options, "--uninstall").stdout


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        (("nowhere",), NotFoundError, "nowhere"),
        (("library_desk", "--task", "nothing"), NotFoundError, "nothing"),
        (("library_desk", "--print", "--uninstall"), UsageError, "--print"),
    ],
)
def test_wrong_use_of_the_command_writes_nothing(
    tmp_path: Path,
    envscaler: Callable[..., Result],
    options: tuple[str, ...],
    error: type[EnvScalerError],
    word: str,
) -> None:
    with pytest.raises(error, match=word):
        envscaler("install", "cursor", *options)
    assert list(tmp_path.iterdir()) == []


def test_the_command_without_a_task_starts_from_the_first_one(
    tmp_path: Path, envscaler: Callable[..., Result]
) -> None:
    record = json.loads(envscaler("install", "cursor", "library_desk", "--json").stdout)
    assert record["config"] == str(tmp_path / ".cursor" / "mcp.json")
    arguments = record["entry"]["args"]
    assert arguments[arguments.index("--task") + 1].startswith("library_desk-01")
    assert arguments[arguments.index("--store") + 1].startswith(str(tmp_path / "state"))


def test_installing_imports_no_langchain() -> None:
    code = (
        "import sys, langchain_envscaler.mcp.install\n"
        "print([name for name in ('langchain', 'langchain_core', 'mcp') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.strip() == "[]"


def _speak(entry: dict[str, Any], folder: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Start a server as a desktop client does, and give the answers: every line of stdout must be one."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "desktop", "version": "1"},
    }
    messages = [
        {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": number, **request} for number, request in enumerate(requests)),
    ]
    answers = []
    with subprocess.Popen(
        [entry["command"], *entry["args"]],
        env={"PATH": "/usr/bin:/bin"},
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            for message in messages:
                print(json.dumps(message), file=server.stdin, flush=True)
                if "id" in message:
                    answers.append(json.loads(server.stdout.readline()))
            rest, log = server.communicate(timeout=SECONDS)
        finally:
            server.kill()
    assert (rest, log, server.returncode) == ("", "", 0)
    assert all(answer["jsonrpc"] == "2.0" and "result" in answer for answer in answers)
    return answers[1:]


def test_an_installed_server_answers_in_an_empty_environment_and_goes_on_in_the_next_process(
    tmp_path: Path, envscaler: Callable[..., Result]
) -> None:
    assert envscaler("install", "cursor", "library_desk").exit_code == 0
    (entry,) = json.loads((tmp_path / ".cursor" / "mcp.json").read_text())["mcpServers"].values()
    project = tmp_path / "project"
    project.mkdir()
    for name in ("json.py", "typer.py", "langchain_envscaler.py"):
        (project / name).write_text("print('from the project'); raise SystemExit(9)\n")
    register = {
        "method": "tools/call",
        "params": {
            "name": "register_member",
            "arguments": {"name": "Ann Example", "email": "ann@example.org", "category": "adult"},
        },
    }
    find = {"method": "tools/call", "params": {"name": "find_members", "arguments": {"query": "Ann Example"}}}
    tools, registered = _speak(entry, project, {"method": "tools/list"}, register)
    assert "register_member" in [tool["name"] for tool in tools["result"]["tools"]]
    assert not registered["result"].get("isError")
    (found,) = _speak(entry, project, find)
    assert "ann@example.org" in found["result"]["content"][0]["text"]
