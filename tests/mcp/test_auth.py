"""Tokens: kept as hashes, each of one principal."""

import json
from pathlib import Path

import pytest

from langchain_envscaler.errors import DataError, NotFoundError
from langchain_envscaler.mcp.auth import TokenTable, new_token


def _write(path: Path, *records: object) -> Path:
    path.write_text(json.dumps({"tokens": list(records)}))
    return path


async def test_a_new_token_is_known_by_its_hash_alone(tmp_path: Path) -> None:
    token, record = new_token("alice")
    file = _write(tmp_path / "tokens.json", record.model_dump())
    assert token not in file.read_text()
    access = await TokenTable.load(file).verify_token(token)
    assert access is not None
    assert (access.client_id, access.subject) == ("alice", "alice")
    assert access.token != token


async def test_another_token_gives_no_access() -> None:
    _, record = new_token("alice")
    other, _ = new_token("alice")
    table = TokenTable([record])
    for wrong in (other, record.sha256, "", "envscaler_"):
        assert await table.verify_token(wrong) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "readable JSON"),
        ("[]", "the top level"),
        ('{"tokens": []}', "at least one"),
        ('{"tokens": [{"principal": "a", "sha256": "hush-hush"}]}', "tokens.0.sha256"),
        ('{"tokens": [{"principal": "a b", "sha256": "%s"}]}' % ("0" * 64), "tokens.0.principal"),
        ('{"tokens": [{"principal": "a", "token": "hush-hush"}]}', "tokens.0"),
    ],
)
def test_a_malformed_file_is_named_without_its_secrets(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(content)
    with pytest.raises(DataError) as caught:
        TokenTable.load(file)
    assert message in str(caught.value)
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"nothing\.json"):
        TokenTable.load(tmp_path / "nothing.json")
