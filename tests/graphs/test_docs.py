"""The page on graphs tells the truth: its programs run and print what they should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRINTED = [
    ["Task Completed. The recorded solution has no more steps."],
    ["{'library_desk': 'connected', 'smart_home': 'connected'}", "{'success': True,"],
    ["1.0", "1.0 2", "1.0 3"],
    ["user 1.0"],
    ["['check_in']", "1.0"],
]


def programs() -> list[str]:
    page = ROOT / "docs" / "graphs.md"
    if not page.exists():
        return []
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_every_program_has_its_output_noted():
    if not programs():
        pytest.skip("skipped: docs/graphs.md is not beside the tests")
    assert len(programs()) == len(PRINTED)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_a_program_of_the_page_runs(number: int, tmp_path: Path) -> None:
    if not programs():
        pytest.skip("skipped: docs/graphs.md is not beside the tests")
    program = tmp_path / "program.py"
    program.write_text(programs()[number], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == PRINTED[number]


def test_the_example_of_an_agent_in_a_workflow_runs(tmp_path: Path) -> None:
    example = ROOT / "examples" / "agent_in_a_workflow.py"
    if not example.exists():
        pytest.skip("skipped: examples/ is not beside the tests")
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "reward: 1.0"
