"""The page on environments tells the truth: its programs run, and its table is what is bundled."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_envscaler.environments.catalog import Catalog

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"


@pytest.fixture(scope="module")
def page() -> str:
    if not PAGE.exists():
        pytest.skip(f"needs a checkout: {PAGE.name} is not beside the tests")
    return PAGE.read_text(encoding="utf-8")


def test_the_programs_on_the_page_run_and_solve_their_tasks(page: str, tmp_path: Path) -> None:
    programs = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    first, environment, usage = programs
    for program in (first, environment, usage):
        name = re.match(r"# (\w+\.py)\n", program)
        (tmp_path / (name[1] if name else "first.py")).write_text(program, encoding="utf-8")
    for name in ("first.py", "solve_car_park.py"):
        done = subprocess.run(
            [sys.executable, name], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "1.0"
    assert Catalog.load(tmp_path / "car_park_data").scenario("car_park", "car_park-01").task


def test_the_table_lists_each_bundled_environment_with_its_size(page: str) -> None:
    catalog = Catalog.bundled()
    listed = re.findall(r"^\| `(\w+)` \|[^|]+\| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert listed == [
        (env_id, str(len(spec.tools)), str(len(catalog.scenarios_of(env_id))))
        for env_id, spec in catalog.environments.items()
    ]
