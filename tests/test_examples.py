"""Each example runs as its reader would run it, and shows what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("any_mcp_servers", ["tool: 1 notes kept", "tool: M-102 has returned The Salt Road."]),
        ("desktop_client", ["Result: {'success': True", "Error: Invalid arguments for check_in"]),
    ],
)
def test_an_example_runs_offline(name: str, shown: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for text in shown:
        assert text in done.stdout
