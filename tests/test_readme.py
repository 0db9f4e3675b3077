"""What README shows runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_episode_program_runs_as_it_stands(tmp_path: Path) -> None:
    program = next(text for text in PROGRAMS if "Catalog.bundled()" in text)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("{'success': True")
    assert "'members'" in done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_compiles_and_names_what_there_is(program: str) -> None:
    compile(program, str(README), "exec")
    names = re.search(r"from langchain_envscaler import (.+)", program)
    for name in names[1].split(", ") if names else ():
        assert hasattr(__import__("langchain_envscaler"), name)


def test_every_file_that_it_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
