"""The environments and scenarios at hand: bundled, read from EnvScaler's files, or added by hand."""

import json
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from langchain_envscaler.environments.metadata import EnvironmentSpec, Scenario
from langchain_envscaler.errors import DataError, NotFoundError

if TYPE_CHECKING:
    from langchain_envscaler.environments.episode import Episode
    from langchain_envscaler.environments.service import EpisodeService

__all__ = ["Catalog", "Problem"]

_BUNDLED = "langchain_envscaler.environments.bundled"


class Problem(BaseModel):
    """An entry that was left out: where it stands, which it is, and why."""

    model_config = ConfigDict(frozen=True)

    source: str
    entry: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.entry}: {self.reason}"


class Catalog:
    """Environments by id, their scenarios, and the entries that could not be read.

    Attributes:
        environments: Environments by `env_id`; specs may be added.
        scenarios: All scenarios, in the order in which they were read.
        problems: What was left out.
    """

    def __init__(
        self,
        environments: Iterable[EnvironmentSpec] = (),
        scenarios: Iterable[Scenario] = (),
        problems: Iterable[Problem] = (),
    ) -> None:
        self.environments: dict[str, EnvironmentSpec] = {spec.env_id: spec for spec in environments}
        self.scenarios: list[Scenario] = list(scenarios)
        self.problems: list[Problem] = list(problems)
        self._service: EpisodeService | None = None

    @classmethod
    def bundled(cls) -> Self:
        """The environments that come with the package."""
        return cls(*_read_bundled())

    @classmethod
    def load(cls, environments_path: Path | str, scenarios_path: Path | str | None = None) -> Self:
        """Read EnvScaler's files.

        One bad entry is named in `problems` and spoils no other.

        Args:
            environments_path: A file of environments, an object by `env_id` or a list; or a folder with such
                a file (`env_metadata.json`) and any number of scenario files (`*scenario*.json`).
            scenarios_path: A file of scenarios, a list; None in a folder's case takes those that lie there.

        Raises:
            NotFoundError: A file or folder that is not there.
            DataError: A file that is not JSON, or neither an object nor a list.
        """
        environments_file, scenario_files = _files(Path(environments_path), scenarios_path)
        catalog = cls()
        catalog._read_environments(environments_file)
        for file in scenario_files:
            catalog._read_scenarios(file)
        return catalog

    def merge(self, other: "Catalog") -> None:
        """Add another catalog's entries. Where an id is taken already, the new entry is a problem."""
        for spec in other.environments.values():
            self._add_environment(spec, "the added catalog")
        for scenario in other.scenarios:
            self._add_scenario(scenario, "the added catalog", self._task_keys())
        self.problems += other.problems

    def environment(self, env_id: str) -> EnvironmentSpec:
        """The environment of that id.

        Raises:
            NotFoundError: There is none.
        """
        spec = self.environments.get(env_id)
        if spec is None:
            nearest = _nearest(env_id, self.environments)
            raise NotFoundError(f"expected the id of an environment, found {env_id!r}; {nearest}")
        return spec

    def scenarios_of(self, env_id: str) -> list[Scenario]:
        """An environment's scenarios, in order."""
        return [scenario for scenario in self.scenarios if scenario.env_id == env_id]

    def scenario(self, env_id: str, task_id: str) -> Scenario:
        """The scenario of that task in that environment.

        Raises:
            NotFoundError: There is no such environment or task.
        """
        self.environment(env_id)
        tasks = {scenario.task_id: scenario for scenario in self.scenarios_of(env_id)}
        if task_id not in tasks:
            raise NotFoundError(
                f"expected the id of a task of environment {env_id!r}, found {task_id!r}; "
                f"{_nearest(task_id, tasks)}"
            )
        return tasks[task_id]

    def start(
        self,
        env_id: str,
        task_id: str | None = None,
        *,
        init_config: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> "Episode":
        """Start an episode that lasts as long as this process; a service with a store keeps episodes longer.

        Args:
            env_id: The environment.
            task_id: The scenario; None starts without a task.
            init_config: A state to start from instead of the scenario's.
            seed: Makes the environment's randomness and clock repeatable.

        Raises:
            NotFoundError: There is no such environment or task.
        """
        return self._own_service().start(env_id, task_id, init_config=init_config, seed=seed)

    async def astart(
        self,
        env_id: str,
        task_id: str | None = None,
        *,
        init_config: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> "Episode":
        """As `start`, without blocking the event loop."""
        return await self._own_service().astart(env_id, task_id, init_config=init_config, seed=seed)

    def _own_service(self) -> "EpisodeService":
        from langchain_envscaler.environments.service import EpisodeService

        if self._service is None:
            self._service = EpisodeService(self)
        return self._service

    def export(self, folder: Path | str) -> None:
        """Write EnvScaler's files, `env_metadata.json` and `scenario_metadata.json`, into a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        environments = {env_id: spec.to_envscaler() for env_id, spec in self.environments.items()}
        scenarios = [scenario.to_envscaler() for scenario in self.scenarios]
        for name, content in (("env_metadata.json", environments), ("scenario_metadata.json", scenarios)):
            text = json.dumps(content, ensure_ascii=False, indent=2)
            (folder / name).write_text(f"{text}\n", encoding="utf-8")

    def _read_environments(self, file: Path) -> None:
        for entry, record in _entries(_json(file), file):
            try:
                if isinstance(record, dict) and "env_id" not in record and not entry.startswith("entry "):
                    record = {"env_id": entry, **record}
                self._add_environment(EnvironmentSpec.model_validate(record), str(file))
            except (ValidationError, ValueError) as error:
                self.problems.append(Problem(source=str(file), entry=entry, reason=_reason(error)))

    def _read_scenarios(self, file: Path) -> None:
        taken = self._task_keys()
        for entry, record in _entries(_json(file), file):
            try:
                self._add_scenario(Scenario.model_validate(record), str(file), taken)
            except (ValidationError, ValueError) as error:
                self.problems.append(Problem(source=str(file), entry=entry, reason=_reason(error)))

    def _add_environment(self, spec: EnvironmentSpec, source: str) -> None:
        if spec.env_id in self.environments:
            reason = f"expected an env_id of its own, found {spec.env_id!r} a second time"
            self.problems.append(Problem(source=source, entry=spec.env_id, reason=reason))
        else:
            self.environments[spec.env_id] = spec

    def _add_scenario(self, scenario: Scenario, source: str, taken: set[tuple[str, str]]) -> None:
        key = (scenario.env_id, scenario.task_id)
        reason = None
        if scenario.env_id not in self.environments:
            reason = f"expected an environment {scenario.env_id!r} for the task, found none in the catalog"
        elif key in taken:
            reason = f"expected a task_id of its own, found {scenario.task_id!r} a second time"
        if reason:
            self.problems.append(Problem(source=source, entry=scenario.task_id, reason=reason))
        else:
            taken.add(key)
            self.scenarios.append(scenario)

    def _task_keys(self) -> set[tuple[str, str]]:
        return {(scenario.env_id, scenario.task_id) for scenario in self.scenarios}


@cache
def _read_bundled() -> tuple[tuple[EnvironmentSpec, ...], tuple[Scenario, ...], tuple[Problem, ...]]:
    specs: list[EnvironmentSpec] = []
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    for module in iter_modules(import_module(_BUNDLED).__path__):
        if not module.ispkg:
            continue
        try:
            environment = import_module(f"{_BUNDLED}.{module.name}.environment")
            found = list(import_module(f"{_BUNDLED}.{module.name}.scenarios").SCENARIOS)
            classes = {scenario.env_class_name for scenario in found}
            specs.append(EnvironmentSpec.from_class(getattr(environment, classes.pop()), env_id=module.name))
            scenarios += found
        except Exception as error:
            problems.append(Problem(source=_BUNDLED, entry=module.name, reason=_reason(error)))
    return tuple(specs), tuple(scenarios), tuple(problems)


def _files(environments: Path, scenarios: Path | str | None) -> tuple[Path, list[Path]]:
    if not environments.exists():
        raise NotFoundError(
            "expected a file of environments or a folder of EnvScaler's files, "
            f"found nothing at {environments}"
        )
    given = [Path(scenarios)] if scenarios is not None else []
    for file in given:
        if not file.exists():
            raise NotFoundError(f"expected a file of scenarios, found nothing at {file}")
    if not environments.is_dir():
        return environments, given
    found = sorted(environments.glob("*env_metadata*.json"))
    if len(found) != 1:
        raise DataError(
            f"expected one file env_metadata.json in {environments}, found {len(found)}; name the file itself"
        )
    return found[0], given or sorted(environments.glob("*scenario*.json"))


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        found = error.strerror or error
        raise DataError(f"expected a file that can be read at {file}, found: {found}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected JSON in {file}, found: {error}") from None


def _entries(content: Any, file: Path) -> Iterator[tuple[str, Any]]:
    """Each entry with a name for messages: its key, its own id, or its number."""
    if isinstance(content, dict):
        yield from content.items()
    elif isinstance(content, list):
        for number, record in enumerate(content):
            named = record.get("task_id") or record.get("env_id") if isinstance(record, dict) else None
            yield str(named or f"entry {number}"), record
    else:
        raise DataError(f"expected an object or a list of entries in {file}, found {type(content).__name__}")


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'entry'}: {item['msg']}"
            for item in error.errors(include_url=False, include_input=False)[:3]
        )
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    if near := get_close_matches(name, names, n=3):
        return "nearest: " + ", ".join(near)
    shown = ", ".join(names[:10]) + (" ..." if len(names) > 10 else "")
    return f"there are: {shown}" if names else "there are none"
