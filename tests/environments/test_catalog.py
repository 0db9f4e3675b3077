import json
from pathlib import Path
from typing import Any

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.metadata import EnvironmentSpec
from langchain_envscaler.errors import DataError, NotFoundError

ENVIRONMENT: dict[str, Any] = {
    "env_id": "lamp",
    "env_class_name": "Lamp",
    "env_class_code": "class Lamp:\n    pass\n",
    "tools": [
        {
            "type": "function",
            "function": {"name": "on", "description": "On.", "parameters": {"type": "object"}},
        }
    ],
}
SCENARIO: dict[str, Any] = {
    "env_id": "lamp",
    "task_id": "lamp-1",
    "task": "Light.",
    "init_config": {"lit": False},
    "checklist_with_func": [{"check_item": "Lit?", "check_func": "def check_func(final_state): return True"}],
}


def _written(folder: Path, environments: Any, scenarios: Any = None) -> Path:
    (folder / "env_metadata.json").write_text(json.dumps(environments))
    if scenarios is not None:
        (folder / "rl_scenario_metadata.json").write_text(json.dumps(scenarios))
    return folder


def test_the_reference_sample_loads_whole(shared: Path) -> None:
    catalog = Catalog.load(shared / "envscaler")
    assert (len(catalog.environments), len(catalog.scenarios), catalog.problems) == (14, 32, [])
    assert sum(len(spec.tools) for spec in catalog.environments.values()) == 272


def test_the_bundled_environments_load_whole() -> None:
    catalog = Catalog.bundled()
    assert catalog.problems == []
    assert {len(catalog.scenarios_of(env_id)) >= 10 for env_id in catalog.environments} == {True}
    assert {10 <= len(spec.tools) <= 20 for spec in catalog.environments.values()} == {True}
    assert len(catalog.environments) == 6


@pytest.mark.parametrize("environments", [{"lamp": ENVIRONMENT}, [ENVIRONMENT]])
def test_an_object_by_id_and_a_list_are_read_alike(tmp_path: Path, environments: Any) -> None:
    catalog = Catalog.load(_written(tmp_path, environments, [SCENARIO]))
    assert list(catalog.environments) == ["lamp"]
    assert catalog.scenario("lamp", "lamp-1").init_config == {"lit": False}


def test_an_object_by_id_may_leave_the_id_to_its_key(tmp_path: Path) -> None:
    record = {key: value for key, value in ENVIRONMENT.items() if key != "env_id"}
    assert list(Catalog.load(_written(tmp_path, {"lamp": record})).environments) == ["lamp"]


def test_structured_fields_may_be_json_text(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "tools": json.dumps(ENVIRONMENT["tools"]), "env_func_details": "{}"}
    scenario = {
        **SCENARIO,
        "init_config": json.dumps(SCENARIO["init_config"]),
        "checklist_with_func": json.dumps(SCENARIO["checklist_with_func"]),
    }
    catalog = Catalog.load(_written(tmp_path, [environment], [scenario]))
    assert catalog.problems == []
    assert catalog.environments["lamp"].tools == ENVIRONMENT["tools"]
    assert catalog.scenarios[0].checklist_with_func[0].check_item == "Lit?"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"env_id": "bad"}, "Field required"),
        (17, "Input should be a valid dictionary"),
        ({**ENVIRONMENT, "env_id": "bad", "tools": "[{"}, "tools"),
        ({**ENVIRONMENT, "env_id": "bad", "tools": [{"function": {}}]}, "function schema with a name"),
        ({**ENVIRONMENT, "env_id": "bad", "tools": ENVIRONMENT["tools"] * 2}, "'on' twice"),
        (ENVIRONMENT, "a second time"),
    ],
)
def test_one_bad_environment_is_named_and_spoils_no_other(tmp_path: Path, bad: Any, reason: str) -> None:
    catalog = Catalog.load(_written(tmp_path, [ENVIRONMENT, bad], [SCENARIO]))
    assert list(catalog.environments) == ["lamp"]
    assert len(catalog.scenarios) == 1
    assert len(catalog.problems) == 1
    assert reason in catalog.problems[0].reason


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"env_id": "lamp", "task_id": "x"}, "task: Field required"),
        ({**SCENARIO, "task_id": "x", "env_id": "gone"}, "expected an environment 'gone'"),
        ({**SCENARIO, "task_id": "x", "init_config": [1]}, "init_config"),
        (SCENARIO, "a second time"),
    ],
)
def test_one_bad_scenario_is_named_and_spoils_no_other(tmp_path: Path, bad: Any, reason: str) -> None:
    catalog = Catalog.load(_written(tmp_path, [ENVIRONMENT], [SCENARIO, bad]))
    assert [scenario.task_id for scenario in catalog.scenarios] == ["lamp-1"]
    assert reason in catalog.problems[0].reason


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"found nothing at .*nowhere"):
        Catalog.load(tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match="file of scenarios, found nothing"):
        Catalog.load(_written(tmp_path, []), tmp_path / "none.json")


@pytest.mark.parametrize("text", ["{", "3", "\ufeff"])
def test_a_broken_file_says_what_was_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "env_metadata.json").write_text(text)
    with pytest.raises(DataError, match=r"env_metadata\.json"):
        Catalog.load(tmp_path)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    catalog = Catalog.bundled()
    with pytest.raises(NotFoundError, match="nearest: library_desk"):
        catalog.environment("libary_desk")
    with pytest.raises(NotFoundError, match="task of environment 'library_desk'"):
        catalog.scenario("library_desk", "nothing")


def test_merging_keeps_what_was_there(tmp_path: Path) -> None:
    catalog = Catalog([EnvironmentSpec.model_validate(ENVIRONMENT)])
    catalog.merge(Catalog.load(_written(tmp_path, [{**ENVIRONMENT, "env_class_name": "Other"}], [SCENARIO])))
    assert catalog.environments["lamp"].env_class_name == "Lamp"
    assert len(catalog.scenarios) == 1
    assert [problem.entry for problem in catalog.problems] == ["lamp"]


def test_an_export_reads_back_the_same(tmp_path: Path) -> None:
    catalog = Catalog.bundled()
    catalog.export(tmp_path)
    again = Catalog.load(tmp_path)
    assert again.problems == []
    assert again.scenarios == catalog.scenarios
    assert again.environments == catalog.environments
