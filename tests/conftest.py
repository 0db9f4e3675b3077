"""What every test may use."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data that lies beside a checkout of the project, for the tests that need it."""
    if not SHARED.is_dir():
        pytest.skip("skipped: the reference data (../shared) does not lie beside this checkout")
    return SHARED
