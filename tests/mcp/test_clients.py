"""Client configurations become typed server entries, whichever client they were written for."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_envscaler.errors import DataError, NotFoundError, UsageError
from langchain_envscaler.mcp.clients import HttpServerEntry, StdioServerEntry, parse_clients
from langchain_envscaler.mcp.config_text import decode_config

CLAUDE_DESKTOP = {
    "mcpServers": {
        "files": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "~/Documents"],
            "env": {"LEVEL": "debug"},
        }
    }
}


def test_claude_desktop_form() -> None:
    assert parse_clients(CLAUDE_DESKTOP) == [
        StdioServerEntry(
            name="files",
            command="npx",
            args=("-y", "@modelcontextprotocol/server-filesystem", "~/Documents"),
            env={"LEVEL": "debug"},
        )
    ]


def test_vs_code_form_with_comments_inputs_and_trailing_commas(tmp_path: Path) -> None:
    folder = tmp_path / ".vscode"
    folder.mkdir()
    (folder / "mcp.json").write_text(
        """
        {
          // what is asked for once
          "inputs": [{"type": "promptString", "id": "key", "description": "a // key", "password": true}],
          "servers": {
            /* a process */
            "local": {"command": "run", "args": ["${workspaceFolder}/x"], "env": {"K": null}},
            "remote": {"type": "http", "url": "https://h.example/mcp", "headers": {"K": "${input:key}"},},
          },
        }
        """
    )
    local, remote = parse_clients(folder / "mcp.json", inputs={"key": "abc"})
    assert isinstance(local, StdioServerEntry)
    assert local.args == (f"{tmp_path}/x",)
    assert local.env == {}
    assert remote == HttpServerEntry(name="remote", url="https://h.example/mcp", headers={"K": "abc"})


def test_vs_code_settings_file_holds_the_servers_one_level_down() -> None:
    settings = {"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "x"}}}}
    assert [entry.name for entry in parse_clients(settings)] == ["a"]


@pytest.mark.parametrize(
    ("fields", "transport"),
    [
        ({"url": "http://h/mcp"}, "http"),
        ({"url": "http://h/sse"}, "sse"),
        ({"url": "http://h/sse", "type": "http"}, "http"),
        ({"url": "http://h/x", "type": "sse"}, "sse"),
        ({"url": "http://h/x", "type": "streamableHttp"}, "http"),
        ({"url": "http://h/x", "transport": "streamable_http"}, "http"),
        ({"serverUrl": "http://h/x"}, "http"),
        ({"httpUrl": "http://h/x"}, "http"),
    ],
)
def test_transport_of_an_address(fields: dict[str, str], transport: str) -> None:
    (entry,) = parse_clients({"mcpServers": {"a": fields}})
    assert entry.transport == transport


def test_bare_mapping_of_names_to_entries() -> None:
    entries = parse_clients({"a": {"command": "x", "transport": "stdio"}, "b": {"url": "http://h/mcp"}})
    assert [type(entry) for entry in entries] == [StdioServerEntry, HttpServerEntry]


def test_plain_urls_get_different_names() -> None:
    entries = parse_clients(["http://127.0.0.1:8000/episodes/a/mcp", "http://127.0.0.1:8000/episodes/b/mcp"])
    assert [entry.name for entry in entries] == ["127_0_0_1_8000", "127_0_0_1_8000_2"]


def test_name_of_a_url_shows_no_credentials() -> None:
    (entry,) = parse_clients("https://user:secret@example.com/mcp")
    assert entry.name == "example_com"


def test_text_of_a_configuration() -> None:
    assert parse_clients(json.dumps(CLAUDE_DESKTOP)) == parse_clients(CLAUDE_DESKTOP)


def test_file_and_path_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CLAUDE_DESKTOP))
    assert parse_clients(file) == parse_clients(str(file)) == parse_clients(CLAUDE_DESKTOP)


def test_several_sources_and_finished_entries_keep_their_order() -> None:
    entry = HttpServerEntry(name="mine", url="http://h/mcp")
    assert [one.name for one in parse_clients([CLAUDE_DESKTOP, entry])] == ["files", "mine"]
    assert parse_clients(entry) == [entry]


def test_switched_off_servers_are_left_out() -> None:
    config = {
        "mcpServers": {"a": {"command": "x", "disabled": True}, "b": {"command": "x", "disabled": False}}
    }
    assert [entry.name for entry in parse_clients(config)] == ["b"]


def test_keys_for_other_clients_are_left_aside() -> None:
    fields = {"command": "x", "autoApprove": ["read"], "timeout": 60, "icon": None}
    assert parse_clients({"mcpServers": {"a": fields}}) == [StdioServerEntry(name="a", command="x")]


def test_variables_come_from_the_environment() -> None:
    fields = {
        "command": "${HOME_OF_TOOLS:-/opt}/run",
        "args": ["${env:MODE}", "${pathSeparator}", "$PLAIN", "${not a name}"],
        "env": {"PORT": 8080, "TOKEN": "${TOKEN}"},
    }
    (entry,) = parse_clients({"mcpServers": {"a": fields}}, environ={"MODE": "fast", "TOKEN": "t"})
    assert isinstance(entry, StdioServerEntry)
    assert entry.command == "/opt/run"
    assert entry.args == ("fast", "/", "$PLAIN", "${not a name}")
    assert entry.env == {"PORT": "8080", "TOKEN": "t"}


def test_headers_and_urls_take_variables_too() -> None:
    fields = {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    (entry,) = parse_clients({"mcpServers": {"a": fields}}, environ={"HOST": "h.example", "TOKEN": "t"})
    assert entry == HttpServerEntry(
        name="a", url="https://h.example/mcp", headers={"Authorization": "Bearer t"}
    )


def test_relative_folders_start_at_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# a comment\nexport A=1\nB='two words' \nC=3 # three\nA=${x}\n")
    file = tmp_path / ".mcp.json"
    file.write_text(
        json.dumps(
            {"mcpServers": {"a": {"command": "x", "cwd": "work", "envFile": ".env", "env": {"C": "4"}}}}
        )
    )
    (entry,) = parse_clients(file)
    assert isinstance(entry, StdioServerEntry)
    assert entry.cwd == tmp_path / "work"
    assert entry.env == {"A": "${x}", "B": "two words", "C": "4"}


def test_input_default_stands_in_for_an_answer() -> None:
    config = {
        "inputs": [{"id": "city", "default": "Rome"}],
        "servers": {"a": {"command": "x", "args": ["${input:city}"]}},
    }
    (entry,) = parse_clients(config)
    (answered,) = parse_clients(config, inputs={"city": "Oslo"})
    assert isinstance(entry, StdioServerEntry)
    assert isinstance(answered, StdioServerEntry)
    assert (entry.args, answered.args) == (("Rome",), ("Oslo",))


def test_secrets_stay_out_of_the_repr() -> None:
    entries = parse_clients(
        {"a": {"command": "x", "env": {"T": "hush"}}, "b": {"url": "http://h/", "headers": {"T": "hush"}}}
    )
    assert "hush" not in repr(entries)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "mcpServers"),
        ({"mcpServers": []}, "object of names"),
        ({"mcpServers": {}, "servers": {}}, "both"),
        ({"mcpServers": {"a": "npx"}}, "object for server 'a'"),
        ({"mcpServers": {"a": {}}}, "no key"),
        ({"mcpServers": {"a": {"cmd": "x"}}}, "the keys cmd"),
        ({"mcpServers": {"a": {"command": "x", "url": "http://h/"}}}, "exactly one"),
        ({"mcpServers": {"": {"command": "x"}}}, "name for each server"),
        ({"mcpServers": {"a": {"command": ""}}}, "program"),
        ({"mcpServers": {"a": {"command": ["x"]}}}, 'text as "command"'),
        ({"mcpServers": {"a": {"command": "x", "args": "-y"}}}, "list of texts"),
        ({"mcpServers": {"a": {"command": "x", "args": [True]}}}, "found bool"),
        ({"mcpServers": {"a": {"command": "x", "env": ["A=1"]}}}, "object of names to texts"),
        ({"mcpServers": {"a": {"command": "x", "env": {"A": {}}}}}, "'A' in \"env\""),
        ({"mcpServers": {"a": {"command": "x", "type": "http"}}}, 'expected "url"'),
        ({"mcpServers": {"a": {"url": "http://h/", "type": "stdio"}}}, 'expected "command"'),
        ({"mcpServers": {"a": {"url": "http://h/", "type": "websocket"}}}, "websocket"),
        ({"mcpServers": {"a": {"url": "ftp://h/"}}}, "http://"),
        ({"mcpServers": {"a": {"url": "http://h:port/"}}}, "http://"),
        ({"mcpServers": {"a": {"url": "http://h/", "headers": {"A": "x\r\nB: y"}}}}, "one line"),
        ({"mcpServers": {"a": {"command": "${NOWHERE}"}}}, "NOWHERE"),
        ({"mcpServers": {"a": {"command": "${input:key}"}}}, "'key'"),
    ],
)
def test_malformed_configuration_says_what_was_expected(config: dict[str, object], message: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_clients(config, environ={})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nothing\.json"):
        parse_clients(tmp_path / "nothing.json")


def test_broken_json_is_located_past_comments(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{ /* a\n comment */\n "mcpServers": nonsense }')
    with pytest.raises(DataError, match=r"line 3, column 16"):
        parse_clients(file)


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="readable"):
        parse_clients(tmp_path)


def test_the_same_name_twice_is_refused() -> None:
    with pytest.raises(DataError, match="'a' twice"):
        parse_clients('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')
    with pytest.raises(UsageError, match="'files' twice"):
        parse_clients([CLAUDE_DESKTOP, CLAUDE_DESKTOP])


def test_a_missing_env_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nowhere\.env"):
        parse_clients({"a": {"command": "x", "envFile": str(tmp_path / "nowhere.env")}})


def test_a_broken_env_file_names_the_line_and_not_its_value(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nhush-hush\n")
    with pytest.raises(DataError, match="line 2") as caught:
        parse_clients({"a": {"command": "x", "envFile": str(tmp_path / ".env")}})
    assert "hush" not in str(caught.value)


def test_something_else_is_no_configuration() -> None:
    with pytest.raises(DataError, match="found int"):
        parse_clients([7])  # type: ignore[list-item]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from([None, 2]))
def test_any_json_reads_as_json_does(value: object, indent: int | None) -> None:
    assert decode_config(json.dumps(value, ensure_ascii=False, indent=indent)) == value
