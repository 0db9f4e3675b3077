"""The example that makes an environment of a Python class of the user's own."""

import subprocess
import sys
from pathlib import Path

from langchain_envscaler.environments.catalog import Catalog

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "custom_environment.py"


def test_the_custom_environment_example_solves_its_scenario_and_exports_files_that_can_be_used(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tool_shed"
    run = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )

    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "reward so far: 0.0" in run.stdout
    assert "Ada has the ladder: it has to be returned first." in run.stdout
    assert "fail" not in run.stdout
    assert "reward: 1.0" in run.stdout

    exported = Catalog.load(folder)
    assert exported.problems == []
    (scenario,) = exported.scenarios
    with exported.start(scenario.env_id, scenario.task_id) as episode:
        assert [tool["function"]["name"] for tool in episode.tools] == ["list_tools", "borrow", "give_back"]
        for call in scenario.reference:
            episode.call(call.name, call.arguments)
        assert episode.evaluate().reward == 1.0
