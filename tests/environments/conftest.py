"""What the tests of environments share: environments from a few lines of code, and a service."""

from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.metadata import Check, EnvironmentSpec, Scenario
from langchain_envscaler.environments.service import EpisodeService

QUICK = Limits(call_seconds=1.0, check_seconds=1.0, start_seconds=5.0, chain_seconds=0.2)


def _spec(env_id: str, code: str, **tools: str) -> EnvironmentSpec:
    return EnvironmentSpec(
        env_id=env_id,
        env_class_name="Env",
        env_class_code=dedent(code),
        tools=[
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": f"{name}.",
                    "parameters": {
                        "type": "object",
                        "properties": {argument: {"type": "string"} for argument in arguments.split()},
                        "required": arguments.split(),
                    },
                },
            }
            for name, arguments in tools.items()
        ],
    )


@pytest.fixture(scope="session")
def make_spec() -> Callable[..., EnvironmentSpec]:
    """`make_spec(env_id, code, tool="its arguments", ...)`: an environment whose class is `Env`."""
    return _spec


COUNTER = """
import uuid, time, random

class Env:
    def __init__(self, config):
        self.count = 0
        self.log = []

    def add(self, amount):
        self.count += int(amount)
        return {"count": self.count}

    def look(self):
        return self.count

    def make_id(self):
        made = str(uuid.uuid4())
        self.log.append([made, time.time(), random.random()])
        return made

    def fail(self):
        self.count += 100
        raise ValueError("no such thing")
"""


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """A catalog with a small counter environment."""
    checks = [
        ("Is it three?", "def check_func(final_state):\n    return final_state['count'] == 3"),
        ("Was it zero?", "def check_func(final_state):\n    return initial_state['count'] == 0"),
    ]
    scenario = Scenario(
        env_id="counter",
        task_id="three",
        task="Count to three.",
        checklist_with_func=[Check(check_item=item, check_func=code) for item, code in checks],
    )
    return Catalog([_spec("counter", COUNTER, add="amount", look="", make_id="", fail="")], [scenario])


@pytest.fixture(scope="module")
def service(catalog: Catalog) -> Iterator[EpisodeService]:
    """A service in memory with short limits."""
    with EpisodeService(catalog, limits=QUICK) as service:
        yield service


@pytest.fixture
def run(service: EpisodeService, make_spec: Callable[..., EnvironmentSpec]) -> Callable[..., Any]:
    """Starts an episode of an environment from code: `run(code, tool="arguments", ...)`."""

    def start(code: str, **tools: str) -> Any:
        env_id = f"env-{len(service.catalog.environments)}"
        service.catalog.environments[env_id] = make_spec(env_id, code, **tools)
        return service.start(env_id)

    return start
