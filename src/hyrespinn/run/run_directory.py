"""A run on disk: configuration, history, checkpoints, solution, result."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..discretise import Discretisation
from ..errors import UserError
from ..files import write_atomically, write_json, write_text
from ..settings import from_json
from ..solution import pickle_problem, problem_from
from ..training.checkpoint import load_meta, load_state, save_state
from ..training.records import Clock
from ..training.run_state import RunState
from ..training.stage import StageState
from .config import SCHEMA, RunConfig
from .environment import environment


class RunDirectory:
    """The files of one run. ``create`` starts one, ``open`` finds one."""

    def __init__(self, path: Path):
        self.path = path
        self.warning: str | None = None
        self.begin, self._before = time.perf_counter(), 0.0
        self._configuration: dict[str, Any] = {}  # what config.json holds
        self._rows: list[dict[str, Any]] = []

    config = property(lambda self: self.path / "config.json")
    history = property(lambda self: self.path / "history.csv")
    state = property(lambda self: self.path / "checkpoint" / "state.npz")
    solution = property(lambda self: self.path / "solution.hyres")
    result = property(lambda self: self.path / "result.json")
    figures = property(lambda self: self.path / "figures")

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> RunDirectory:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UserError(_occupied(path))
        run = cls(path)
        try:
            for folder in (path, run.state.parent, run.figures):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"Cannot make the run directory {path}: {error.strerror}.") from error
        content = run._configuration = config.to_json()
        if "problem_parameters" not in content:
            code = pickle_problem(config.problem)
            write_atomically(path / "problem.pickle", lambda file: file.write(code))
        write_json(path / "environment.json", environment(config.precision, config.seed))
        write_json(run.config, content)
        return run

    @classmethod
    def open(cls, path: Path) -> tuple[RunDirectory, RunConfig]:
        run = cls(path)
        if not path.is_dir():
            raise UserError(f"There is no run directory {path}.")
        if not run.config.exists():
            raise UserError(f"{path} is not a run directory: it has no config.json.")
        try:
            content = run._configuration = json.loads(run.config.read_text())
            pickled = path / "problem.pickle"
            config = _configuration(content, pickled.read_bytes() if pickled.exists() else None)
        except UserError as error:
            raise UserError(f"The run directory {path} cannot be used: {error}") from error
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"The run directory {path} is damaged: config.json cannot be read ({error!r})."
            ) from error
        return run, config

    def read_result(self) -> dict[str, Any] | None:
        if not self.result.exists():
            return None
        try:
            return json.loads(self.result.read_text())
        except json.JSONDecodeError as error:
            raise UserError(f"{self.result} is damaged: {error}.") from error

    @property
    def origin(self) -> dict[str, Any]:
        """The commit of the package with which the run was begun and the processor that it ran on,
        where they are known."""
        try:
            found = json.loads((self.path / "environment.json").read_text())
            return {"commit": found["commit"], "processor": found["machine"]["processor"]}
        except (OSError, json.JSONDecodeError, KeyError):
            return {"commit": None, "processor": None}

    def append(self, row: Mapping[str, Any]) -> None:
        self._rows.append(dict(row))
        first = len(self._rows) == 1
        try:
            with self.history.open("w" if first else "a", newline="") as file:
                writer = csv.DictWriter(file, list(self._rows[0]))
                if first:
                    writer.writeheader()
                writer.writerow(row)
        except OSError as error:
            self.warning = f"history.csv is not being written: {error.strerror}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self._rows

    def checkpoint(self, state: StageState, run: RunState, clock: Clock) -> None:
        """A full disk must not end a training: the older checkpoint stays, and a warning is kept."""
        try:
            save_state(
                self.state,
                state,
                {
                    "run": run.to_json(),
                    "seconds": {"training": clock.training, "compilation": clock.compilation},
                    "rows": len(self._rows),
                    "total_seconds": self.seconds,
                    "config": self._configuration,
                },
            )
            self.warning = None
        except UserError as error:
            self.warning = f"no checkpoint could be written, training goes on: {error}"

    def _window(self, index: int) -> Path:
        return self.state.with_name(f"window{index:03d}.npz")

    def keep_window(self, index: int, theta: Any) -> None:
        """The parameters with which a window of time ended."""
        try:
            save_state(self._window(index), theta, {})
        except UserError as error:
            self.warning = f"a finished window could not be kept, training goes on: {error}"

    def read_window(self, index: int, template: Any) -> Any:
        """The parameters of a finished window, in the shape of ``template``."""
        return load_state(self._window(index), template)

    @property
    def seconds(self) -> float:
        """Since the run began, the time between two processes left out."""
        return self._before + time.perf_counter() - self.begin

    def restore(self, meta: Mapping[str, Any]) -> None:
        """Take up the run at a checkpoint; rows of the history after it are computed again."""
        self._before = meta["total_seconds"]
        count = meta["rows"]
        if not count:
            return
        try:
            with self.history.open(newline="") as file:
                rows = list(csv.DictReader(file))
        except OSError as error:
            raise UserError(f"The run directory {self.path} is damaged: {error}.") from error
        if len(rows) < count:
            raise UserError(
                f"The run directory {self.path} is damaged: history.csv has {len(rows)} rows and "
                f"the checkpoint {count}."
            )
        self._rows = [{k: _number(v) for k, v in row.items()} for row in rows[:count]]
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(self._rows[0]))
        writer.writeheader()
        writer.writerows(rows[:count])
        write_text(self.history, text.getvalue())

    def discard_if_empty(self) -> None:
        """Remove a directory in which nothing has been computed yet."""
        if not self._rows and not self.state.exists():
            shutil.rmtree(self.path)

    def check_checkpoint(self) -> dict[str, Any] | None:
        """The meta data of the checkpoint, which must belong to this run; ``None`` before the first."""
        if not self.state.exists():
            return None
        meta = load_meta(self.state)
        if meta["config"] != self._configuration:
            raise UserError(
                f"The checkpoint in {self.path} belongs to another problem or configuration "
                f"({meta['config'].get('problem')!r}) than its config.json."
            )
        return meta


def _configuration(content: dict[str, Any], pickled: bytes | None) -> RunConfig:
    """What ``RunConfig.to_json`` wrote."""
    found = content.get("schema", 1)
    if found < SCHEMA:
        raise UserError(
            "it was made by a version of hyrespinn that had other settings, and its network is "
            "another one. Its history, figures and result.json can be read as they are; solve the "
            "problem again to go on with it."
        )
    if found > SCHEMA:
        raise UserError("it was made by a newer version of hyrespinn; update the package.")
    return RunConfig(
        problem_from(content, pickled),
        from_json(Discretisation, content["discretisation"]),
        **{name: content[name] for name in _RUN_KEYS if name in content},
    )


_RUN_KEYS = (
    "method", "why", "rejected", "preset", "seed", "precision", "max_seconds", "tolerance",
)  # fmt: skip


def _number(text: str) -> Any:
    try:
        return float(text) if "." in text or "e" in text or "n" in text else int(text)
    except ValueError:
        return text


def _occupied(path: Path) -> str:
    config = path / "config.json"
    held = ""
    if config.is_file():
        try:
            held = f" It holds a run of {json.loads(config.read_text())['problem']!r}."
        except (json.JSONDecodeError, KeyError):
            held = " It holds a damaged run."
    return (
        f"{path} exists already and is not overwritten.{held} Choose another --out, or go on with "
        f"`hyrespinn resume {path}`."
    )
