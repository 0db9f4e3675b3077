"""Services of several processes on one store: each sees what the others did."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import NotFoundError


@pytest.fixture
def pair(catalog: Catalog, tmp_path: Path) -> Iterator[tuple[EpisodeService, EpisodeService]]:
    store = str(tmp_path / "episodes.db")
    with EpisodeService(catalog, store=store) as here, EpisodeService(catalog, store=store) as there:
        yield here, there


@pytest.fixture
def behind(pair: tuple[EpisodeService, EpisodeService]) -> Episode:
    """An episode that another service took from its start to where its task is done."""
    here, there = pair
    episode = here.start("counter", "three", seed=1)
    other = there.get(episode.episode_id)
    other.call("add", {"amount": 1})
    other.call("add", {"amount": 2})
    assert episode.revision == 0
    return episode


def test_its_state_is_the_newest(behind: Episode) -> None:
    assert behind.state()["count"] == 3
    assert behind.state(1)["count"] == 1


def test_its_reward_is_that_of_the_newest_state(behind: Episode) -> None:
    assert behind.evaluate().reward == 1.0


def test_its_journal_is_whole(behind: Episode) -> None:
    assert [call.revision for call in behind.history()] == [1, 2]


def test_it_is_forked_where_it_is(behind: Episode) -> None:
    assert behind.fork().state()["count"] == 3


def test_a_snapshot_is_of_the_newest_revision(behind: Episode) -> None:
    snapshot = behind.snapshot()
    behind.reset()
    behind.restore(snapshot)
    assert behind.state()["count"] == 3


def test_a_snapshot_taken_elsewhere_can_be_restored(
    behind: Episode, pair: tuple[EpisodeService, EpisodeService]
) -> None:
    behind.restore(pair[1].get(behind.episode_id).snapshot())
    assert behind.state()["count"] == 3


def test_its_head_is_known_after_a_look(behind: Episode) -> None:
    behind.refresh()
    assert behind.revision == 2


def test_a_list_shows_where_it_is(behind: Episode, pair: tuple[EpisodeService, EpisodeService]) -> None:
    assert [episode.revision for episode in pair[0].list()] == [2]


def test_it_goes_on_from_the_newest_revision(behind: Episode) -> None:
    assert behind.call("add", {"amount": 1}).text == "{'count': 4}"


def test_an_episode_deleted_elsewhere_is_gone(
    behind: Episode, pair: tuple[EpisodeService, EpisodeService]
) -> None:
    pair[1].delete(behind.episode_id)
    with pytest.raises(NotFoundError):
        behind.state()
    with pytest.raises(NotFoundError):
        behind.call("add", {"amount": 1})
