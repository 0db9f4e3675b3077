from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import DataError, LimitError, NotFoundError, UsageError


@pytest.fixture
def episode(service: EpisodeService) -> Episode:
    return service.start("counter", "three")


def test_a_call_has_one_effect_however_often_it_is_sent(episode: Episode) -> None:
    first = episode.call("add", {"amount": 2}, call_id="a")
    again = episode.call("add", {"amount": 2}, call_id="a")
    assert (first.text, first.revision, first.replayed) == ("{'count': 2}", 1, False)
    assert (again.text, again.revision, again.replayed) == ("{'count': 2}", 1, True)
    assert episode.state()["count"] == 2


def test_an_identity_cannot_be_used_for_another_call(episode: Episode) -> None:
    episode.call("add", {"amount": 2}, call_id="a")
    with pytest.raises(UsageError, match="an id of its own"):
        episode.call("add", {"amount": 3}, call_id="a")
    with pytest.raises(UsageError, match="an id of its own"):
        episode.call("look", {}, call_id="a")


def test_the_same_id_at_another_revision_is_another_call(episode: Episode) -> None:
    episode.call("add", {"amount": 2}, call_id="a", revision=0)
    second = episode.call("add", {"amount": 2}, call_id="a", revision=1)
    assert (second.replayed, second.text) == (False, "{'count': 4}")


def test_a_call_at_an_older_revision_forks_there(episode: Episode) -> None:
    episode.call("add", {"amount": 1})
    episode.call("add", {"amount": 1})
    branch = episode.call("add", {"amount": 10}, revision=1)
    assert (branch.text, branch.revision, episode.revision) == ("{'count': 11}", 3, 3)
    assert [record.revision for record in episode.history()] == [1, 3]
    assert [record.depth for record in episode.history()] == [1, 2]
    assert episode.state(2)["count"] == 2


def test_a_snapshot_leads_back_and_forth(episode: Episode) -> None:
    start = episode.snapshot()
    episode.call("add", {"amount": 1})
    later = episode.snapshot()
    episode.restore(start)
    assert episode.state()["count"] == 0
    episode.restore(later)
    assert episode.state()["count"] == 1
    episode.reset()
    assert (episode.revision, episode.state()["count"]) == (0, 0)


def test_a_snapshot_of_another_episode_is_refused(episode: Episode, service: EpisodeService) -> None:
    other = service.start("counter")
    with pytest.raises(UsageError, match="of another"):
        episode.restore(other.snapshot())
    with pytest.raises(UsageError, match="snapshot"):
        episode.restore("nonsense")


def test_a_fork_goes_its_own_way(episode: Episode) -> None:
    episode.call("add", {"amount": 1})
    fork = episode.fork()
    episode.call("add", {"amount": 10})
    assert fork.call("add", {"amount": 5}).text == "{'count': 6}"
    assert episode.state()["count"] == 11
    assert [record.arguments["amount"] for record in fork.history()] == [1, 5]


def test_a_fork_outlives_the_episode_that_it_comes_from(episode: Episode, service: EpisodeService) -> None:
    episode.call("add", {"amount": 1})
    fork = episode.fork()
    service.delete(episode.episode_id)
    with pytest.raises(NotFoundError):
        service.get(episode.episode_id)
    fork.sleep()
    assert fork.call("add", {"amount": 1}).text == "{'count': 2}"
    assert len(fork.history()) == 2


def test_an_unchanged_state_is_not_stored_again(episode: Episode, service: EpisodeService) -> None:
    episode.call("add", {"amount": 1})
    for _ in range(5):
        episode.call("look")
    number = episode.number
    rows = service.store._rows(
        "SELECT key FROM states WHERE key >= ? AND key < ?", (number << 32, (number + 1) << 32)
    )
    assert len(rows) == 2


def test_a_call_that_raises_is_an_observation_and_keeps_what_it_changed(episode: Episode) -> None:
    observation = episode.call("fail")
    assert (observation.is_error, observation.text) == (True, "ValueError: no such thing")
    assert episode.state()["count"] == 100


@pytest.mark.parametrize("name", ["nothing", "__init__", "count", "_private", ""])
def test_only_the_tools_can_be_called(episode: Episode, name: str) -> None:
    observation = episode.call(name, {})
    assert observation.is_error
    assert "Available tools: add, look, make_id, fail." in observation.text
    assert episode.state() == {"count": 0, "log": []}


def test_a_missing_or_unknown_argument_is_refused_with_what_is_expected(episode: Episode) -> None:
    observation = episode.call("add", {"amonut": 1})
    assert observation.is_error
    assert "missing required argument 'amount'; unknown argument 'amonut'" in observation.text
    assert "amount (string, required)" in observation.text


def test_calls_of_one_message_run_in_their_order_whatever_order_they_arrive_in(episode: Episode) -> None:
    with ThreadPoolExecutor(3) as pool:
        calls = [
            pool.submit(
                episode.call, "add", {"amount": 10**place}, call_id=f"c{place}", revision=0, position=place
            )
            for place in (2, 1, 0)
        ]
        texts = [call.result().text for call in calls]
    assert texts == ["{'count': 111}", "{'count': 11}", "{'count': 1}"]
    assert episode.revision == 3


def test_a_new_message_at_an_old_revision_begins_a_new_chain(episode: Episode) -> None:
    for place in (0, 1):
        episode.call("add", {"amount": 1}, call_id=f"a{place}", revision=0, position=place)
    episode.call("add", {"amount": 10}, call_id="b0", revision=0, position=0)
    last = episode.call("add", {"amount": 10}, call_id="b1", revision=0, position=1)
    assert last.text == "{'count': 20}"


def test_a_call_whose_predecessors_do_not_come_runs_after_a_while(episode: Episode) -> None:
    assert episode.call("add", {"amount": 5}, revision=0, position=2).text == "{'count': 5}"


async def test_the_asynchronous_forms_do_the_same(episode: Episode) -> None:
    import asyncio

    calls = [
        episode.acall("add", {"amount": 10**place}, call_id=f"c{place}", revision=0, position=place)
        for place in (1, 0)
    ]
    assert [call.text for call in await asyncio.gather(*calls)] == ["{'count': 11}", "{'count': 1}"]
    assert (await episode.astate())["count"] == 11
    assert (await episode.aevaluate()).reward == 0.5
    await episode.arestore(await episode.asnapshot())
    assert len(await episode.ahistory()) == 2
    async with await episode.afork() as fork:
        assert fork.revision == 2


def test_concurrent_calls_are_all_kept(episode: Episode) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: episode.call("add", {"amount": 1}), range(40)))
    assert episode.state()["count"] == 40
    assert episode.revision == 40


def test_an_evaluation_tells_each_check(episode: Episode) -> None:
    episode.call("add", {"amount": 3})
    assert episode.evaluate().reward == 1.0
    assert episode.evaluate(0).reward == 0.5


def test_without_checks_there_is_no_score(service: EpisodeService) -> None:
    with pytest.raises(UsageError, match="expected a scenario with checks, found no scenario"):
        service.start("counter").evaluate()


def test_revisions_that_are_not_there_are_named(episode: Episode) -> None:
    with pytest.raises(UsageError, match="from 0 to 0"):
        episode.state(7)
    with pytest.raises(UsageError, match="position"):
        episode.call("look", position=-1)
    with pytest.raises(UsageError, match="JSON"):
        episode.call("add", {"amount": object()})


def test_an_episode_goes_on_in_another_process(catalog: Catalog, tmp_path: Path) -> None:
    path = str(tmp_path / "episodes.sqlite")
    with EpisodeService(catalog, store=path) as first:
        episode_id = first.start("counter", "three", episode_id="mine", principal="ann").episode_id
        first.get(episode_id).call("add", {"amount": 3}, call_id="a")
    with EpisodeService(Catalog(), store=path) as second:
        episode = second.get("mine")
        assert (episode.revision, episode.principal) == (1, "ann")
        assert episode.call("add", {"amount": 3}, call_id="a", revision=0).replayed
        assert episode.call("look").text == "3"
        assert episode.evaluate().reward == 1.0
        assert [e.episode_id for e in second.list(principal="ann")] == ["mine"]
        assert (second.count(principal="bob"), second.count()) == (0, 1)


def test_two_services_on_one_store_lose_and_repeat_nothing(catalog: Catalog, tmp_path: Path) -> None:
    path = str(tmp_path / "episodes.sqlite")
    with EpisodeService(catalog, store=path) as first, EpisodeService(catalog, store=path) as second:
        here = first.start("counter")
        there = second.get(here.episode_id)
        with ThreadPoolExecutor(4) as pool:
            list(
                pool.map(
                    lambda n: (here, there)[n % 2].call("add", {"amount": 1}, call_id=f"c{n}"), range(30)
                )
            )
        assert here.call("look").text == there.call("look").text == "30"


def test_a_killed_process_is_replaced_and_no_effect_is_lost_or_doubled(episode: Episode) -> None:
    import os
    import signal

    for expected in range(1, 6):
        pid = episode._process.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert episode.call("add", {"amount": 1}).text == f"{{'count': {expected}}}"


def test_the_limit_on_open_episodes_is_named_and_spares_the_others(catalog: Catalog) -> None:
    with EpisodeService(catalog, max_episodes=2) as service:
        first = service.start("counter")
        service.start("counter")
        with pytest.raises(LimitError, match="fewer than 2 open episodes"):
            service.start("counter")
        assert first.call("look").text == "0"
        first.close()
        service.start("counter")


def test_the_least_used_episodes_go_to_sleep_and_wake_when_called(catalog: Catalog) -> None:
    with EpisodeService(catalog, max_awake=2) as service:
        episodes = [service.start("counter") for _ in range(4)]
        assert [episode.is_awake for episode in episodes] == [False, False, True, True]
        assert episodes[0].call("add", {"amount": 1}).text == "{'count': 1}"


def test_a_closed_episode_says_so_and_can_be_got_again(service: EpisodeService) -> None:
    episode = service.start("counter")
    episode.close()
    with pytest.raises(UsageError, match="closed"):
        episode.call("look")
    assert service.get(episode.episode_id).call("look").text == "0"


@pytest.mark.parametrize("content", [b"no database", b""])
def test_a_file_that_is_no_store_is_refused_and_an_empty_one_taken(
    catalog: Catalog, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    if content:
        with pytest.raises(DataError, match="expected an episode store"):
            EpisodeService(catalog, store=str(path))
    else:
        EpisodeService(catalog, store=str(path)).close()


def test_class_and_module_variables_go_on_after_sleep_and_reach_no_other_episode(
    run: Callable[..., Any],
) -> None:
    code = """
    made = 0
    class Env:
        names = []
        def make(self):
            global made
            made += 1
            Env.names.append(made)
            return list(Env.names)
    """
    first = run(code, make="")
    assert first.call("make").text == "[1]"
    first.sleep()
    assert first.call("make").text == "[1, 2]"
    assert run(code, make="").call("make").text == "[1]"
