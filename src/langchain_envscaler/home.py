"""Where the package keeps what outlives a process: threads and episodes."""

import os
from pathlib import Path

from platformdirs import user_state_path

__all__ = ["EPISODES", "default_home"]

EPISODES = "episodes.sqlite"
"""The file of episodes in the home folder."""


def default_home() -> Path:
    """The folder of threads and episodes: $ENVSCALER_HOME, else the user's state folder of this system."""
    if named := os.environ.get("ENVSCALER_HOME"):
        return Path(named).expanduser().absolute()
    return user_state_path("envscaler", appauthor=False)
