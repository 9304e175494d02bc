"""hyrespinn beside DeepXDE (PyTorch), PINA and jinns: rates of steps, and time to an error.

``python benchmarks/rivals/run.py {step,ssbroyden,accuracy}``; README.md says what is measured.
The rivals' environments are made at the first call. Results that a file already has are kept,
unless ``--again`` asks for new ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import cases
import numpy as np
from environments import HERE, python_of, variables
from hyrespinn.problems import problem_named
from hyrespinn.references import reference_of
from hyrespinn.run.environment import environment

# name: library, arguments of its worker after the equation
STEP = {
    "hyrespinn": ("hyrespinn", ()),
    "jinns, nested jvp": ("jinns", ("jvp",)),
    "jinns, nested grad": ("jinns", ("grad",)),
    "jinns, jet": ("jinns", ("jet",)),
    "deepxde, 2 threads": ("deepxde", ("equal", "2")),
    "deepxde, 1 thread": ("deepxde", ("equal", "1")),
    "deepxde, forward mode": ("deepxde", ("forward", "2")),
    "deepxde, as it comes": ("deepxde", ("plain", "2")),
    "pina, 2 threads": ("pina", ("2",)),
    "pina, 1 thread": ("pina", ("1",)),
}
SSBROYDEN = {
    "hyrespinn": ("hyrespinn", ()),
    "jinns, nested jvp": ("jinns", ("jvp",)),
    "jinns, nested grad": ("jinns", ("grad",)),
    "jinns, jet": ("jinns", ("jet",)),
}
ACCURACY = {
    "hyrespinn": ("hyrespinn", ()),
    "deepxde": ("deepxde", ()),
    "pina": ("pina", ()),
    "jinns-adam": ("jinns", ("--method", "adam")),
    "jinns-ssbroyden": ("jinns", ("--method", "ssbroyden")),
}
PROBLEMS = ("burgers", "allen-cahn-periodic")


def start(library: str, *arguments: str) -> subprocess.Popen[str]:
    """A worker; what its library prints goes to the error output of this process."""
    return subprocess.Popen(
        [str(python_of(library)), str(HERE / f"with_{library}.py"), *arguments],
        cwd=HERE, env=variables(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def answer(name: str, worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    while line and not line.startswith("{"):  # printed by a library while it was imported
        line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"The worker of {name} ended with code {worker.wait()}; see above.")
    return json.loads(line)


def side_by_side(
    candidates: dict[str, tuple[str, tuple[str, ...]]],
    arguments: tuple[str, ...],
    rounds: int,
    seconds: float,
) -> dict[str, Any]:
    """The workers wait in their processes and take turns; the best turn of each counts."""
    workers, results = {}, {}
    try:
        for name, (library, more) in candidates.items():
            workers[name] = start(library, *arguments, *more)
            results[name] = {"told": answer(name, workers[name]), "turns": []}
        for _ in range(rounds):
            for name, worker in workers.items():
                assert worker.stdin is not None
                print(seconds, file=worker.stdin, flush=True)
                results[name]["turns"].append(answer(name, worker))
    finally:
        for worker in workers.values():
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait()
    return {name: summary(**result) for name, result in results.items()}


def summary(told: dict[str, Any], turns: list[dict[str, Any]]) -> dict[str, Any]:
    best = max(turns, key=lambda turn: turn["steps_per_second"])
    rates = [turn["steps_per_second"] for turn in turns]
    return {**told, **best, "all turns, steps a second": rates, "turns": turns}


def check_equal(found: dict[str, Any], size: cases.Size) -> None:
    """The same network, points and loss everywhere, or no comparison."""
    first = found["hyrespinn"]["first loss"]
    tolerance = 1e-4 if size.precision == "float32" else 1e-10
    for name, entry in found.items():
        assert entry["parameters"] == size.parameters, name
        assert entry["residual points"] == size.residual, name
        assert entry["initial points"] == size.initial, name
        assert abs(entry["first loss"] / first - 1) < tolerance, (name, entry["first loss"], first)


def with_ratios(found: dict[str, Any]) -> dict[str, Any]:
    ours = found["hyrespinn"]["steps_per_second"]
    for entry in found.values():
        entry["hyrespinn is faster by"] = ours / entry["steps_per_second"]
    return found


def step(options: argparse.Namespace, kept: dict[str, Any]) -> None:
    for equation in options.equation or cases.EQUATIONS:
        if equation in kept and not options.again:
            continue
        found = side_by_side(STEP, ("step", equation), options.rounds, options.seconds)
        check_equal(found, cases.STEP)
        kept[equation] = with_ratios(found)
        save(options, kept)


def ssbroyden(options: argparse.Namespace, kept: dict[str, Any]) -> None:
    if "allen-cahn" in kept and not options.again:
        return
    found = side_by_side(SSBROYDEN, ("ssbroyden",), options.rounds, options.seconds)
    check_equal(found, cases.SSBROYDEN)
    kept["allen-cahn"] = with_ratios(found)
    save(options, kept)


def accuracy(options: argparse.Namespace, kept: dict[str, Any]) -> None:
    chosen = options.only.split(",") if options.only else list(ACCURACY)
    for problem in options.problem or PROBLEMS:
        reference = export(problem)
        for name in chosen:
            if name in kept.get(problem, {}) and not options.again:
                continue
            print(f"{problem}: {name}, at most {options.limit:g} s", file=sys.stderr, flush=True)
            library, more = ACCURACY[name]
            python_of(library)  # an installation is no part of the time
            worker = start(
                library, "accuracy", problem, "--begin", repr(time.time()),
                "--limit", str(options.limit), "--reference", str(reference), *more,
            )  # fmt: skip
            entry = answer(name, worker)
            worker.wait()
            entry["date"] = datetime.now(UTC).isoformat(timespec="seconds")
            kept.setdefault(problem, {})[name] = entry
            save(options, kept)


def export(problem: str) -> Path:
    """The reference on hyrespinn's test grid as a file that any environment can read."""
    folder = HERE / ".venv-references"
    folder.mkdir(exist_ok=True)
    path = folder / f"{problem}.npz"
    reference = reference_of(problem_named(problem)())
    assert reference is not None
    np.savez(path, points=reference.points, values=reference.flat()["u"])
    return path


def load(options: argparse.Namespace) -> dict[str, Any]:
    if not options.out.exists():
        return {}
    return json.loads(options.out.read_text())["result"]


def save(options: argparse.Namespace, result: dict[str, Any]) -> None:
    precision = {"step": "float32", "ssbroyden": "float64", "accuracy": "both"}[options.what]
    rivals: dict[str, str] = {}
    for entries in result.values():
        for entry in entries.values():
            rivals |= {k: v for k, v in entry["versions"].items() if k != "hyrespinn"}
    content = {
        "result": result,
        "environment": environment(precision, 0),
        "versions of the rivals": rivals,
    }
    options.out.write_text(json.dumps(content, indent=1) + "\n")


def table(result: dict[str, Any]) -> None:
    for case, entries in result.items():
        print(case)
        for name, entry in entries.items():
            if "steps_per_second" in entry:
                faster = entry["hyrespinn is faster by"]
                print(f"  {name:24}{entry['steps_per_second']:10.2f} steps/s   ×{faster:.2f}")
            else:
                when = "not reached" if entry["seconds"] is None else f"{entry['seconds']:.1f} s"
                print(f"  {name:24}{when:>14}   best error {entry['best error']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("step", "ssbroyden", "accuracy"))
    parser.add_argument("--out", type=Path, help="default: results/rivals-<what>.json")
    parser.add_argument("--again", action="store_true", help="measure anew what the file has")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--equation", action="append", choices=tuple(cases.EQUATIONS))
    parser.add_argument("--problem", action="append", choices=PROBLEMS)
    parser.add_argument("--only", help=f"some of {','.join(ACCURACY)}")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds of an accuracy run")
    options = parser.parse_args()
    options.out = options.out or HERE.parents[1] / "results" / f"rivals-{options.what}.json"
    kept = load(options)
    {"step": step, "ssbroyden": ssbroyden, "accuracy": accuracy}[options.what](options, kept)
    table(kept)


if __name__ == "__main__":
    main()
