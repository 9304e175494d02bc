"""Fill the tables of README and docs from ``results/``: ``python benchmarks/tables.py``.

A table stands between ``<!-- name -->`` and ``<!-- end -->``; a test checks that it agrees.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from hyrespinn.bench.bench import Bench
from hyrespinn.bench.plan import COMPARED, PAPER_PROBLEMS, plan
from hyrespinn.bench.published import PAPER_ROWS, published_error
from hyrespinn.bench.table import (
    Cell,
    Row,
    bold_smallest,
    mean,
    problem_grid,
    rows_of,
    spread,
    summary_grid,
)
from hyrespinn.methods import METHODS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def engine() -> str:
    result = json.loads((RESULTS / "engine.json").read_text())["result"]
    lines = [
        "| derivatives | precision | nested | engine | faster by |",
        "|---|---|---|---|---|",
    ]
    for precision, cases in result.items():
        for case, r in cases.items():
            lines.append(
                f"| {case} | {precision} | {r['nested ms']:.1f} ms | {r['engine ms']:.1f} ms | "
                f"{r['ratio']:.1f}× |"
            )
    return "\n".join(lines)


def _paper_references() -> dict[str, Any]:
    return json.loads((RESULTS / "paper_references.json").read_text())["result"]


def printed_start() -> str:
    rows = _paper_references()["D7"]
    times = list(rows["printed"]["max_v"])
    lines = [
        "| start of v | " + " | ".join(f"max v at t = {t}" for t in times) + " |",
        "|---|" + "---|" * len(times),
    ]
    for name, row in rows.items():
        figures = " | ".join(f"{v:.1e}" for v in row["max_v"].values())
        lines.append(f'| `initial="{name}"` | {figures} |')
    return "\n".join(lines)


def sampled_modes() -> str:
    rows = _paper_references()["D9"]
    lines = ["| modes | distance to the converged reference |", "|---|---|"]
    lines += [f"| {n} | {error:.2e} |" for n, error in rows.items()]
    return "\n".join(lines)


def growth() -> str:
    rows = _paper_references()["D11"]
    columns = list(next(iter(rows.values())))
    heads = [f"t = {c}" if c != "all" else "all times" for c in columns]
    lines = ["| disturbance | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{v:,.0f}×" for v in row.values()) + " |")
    return "\n".join(lines)


def references() -> str:
    path = ROOT / "src" / "hyrespinn" / "references" / "self_convergence.json"
    lines = [
        "| problem | reference | self-convergence | made in | memory |",
        "|---|---|---|---|---|",
    ]
    for name, r in json.loads(path.read_text()).items():
        lines.append(
            f"| `{name}` | {r['reference']} | {r['relative_l2']:.1e} | {r['seconds']:.0f} s | "
            f"{r['peak_gigabytes']:.1f} GB |"
        )
    return "\n".join(lines)


def smoke() -> str:
    rows = json.loads((RESULTS / "smoke.json").read_text())["problems"]
    lines = ["| problem | seconds | error at first | error |", "|---|---|---|---|"]
    for name, r in rows.items():
        first = ", ".join(f"{f} {e:.2f}" for f, e in r["rel_l2_initial"].items())
        last = ", ".join(f"{f} {r['rel_l2'][f]:.1e}" for f in r["rel_l2_initial"])
        lines.append(f"| `{name}` | {r['seconds']:.0f} | {first} | {last} |")
    return "\n".join(lines)


@cache
def _bench(name: str) -> Bench | None:
    """The benchmark in ``results/NAME``, as it was recorded; ``None`` where there is none."""
    path = RESULTS / name
    return Bench.open(path) if (path / "bench.json").exists() else None


def _cells(name: str) -> list[Cell]:
    bench = _bench(name)
    return [] if bench is None else list(bench.cells.values())


def comparison() -> str:
    return problem_grid(_cells("paper-20000-steps"), "allen-cahn-dirichlet", COMPARED).markdown()


def smoke_bench() -> str:
    return summary_grid(_cells("network-smoke"), COMPARED).markdown()


NOT_RUN = "not run yet"
EFFORTS = ("fast", "accurate")


@cache
def _present(name: str) -> list[Cell]:
    """The cells of ``results/NAME`` that were run with the present constants of their method."""
    bench = _bench(name)
    if bench is None:
        return []
    present = {task.key: task.configuration for task in plan(bench.request, bench.path)}
    return [cell for k, cell in bench.cells.items() if cell.configuration == present.get(k)]


def _row(preset: str, problem: str) -> Row | None:
    """The cells of a problem with the method collocation; ``None`` where none has finished."""
    cells = [c for c in _present(f"collocation-{preset}") if c.problem == problem]
    row = Row(cells[0].model, cells) if cells else None
    return row if row and row.good else None


def _seeds(row: Row, name: str) -> str:
    """The error, with its deviation and the number of seeds where there are several.

    On a lattice nothing is random, and all seeds are one run.
    """
    errors = row.errors(name)
    if len(set(errors)) == 1 < len(errors):
        return f"{spread(errors[:1])}, any seed"
    return spread(errors) + (f", {len(errors)} seeds" if len(errors) > 1 else "")


def _label(problem: str, field: str) -> str:
    return f"`{problem}`" + (f" {field}" if problem == "grey-scott" else "")


def _parameters(cell: Cell) -> str:
    """All parameters of a run, and those of one window where there are several."""
    total, each = cell.n_params, cell.n_params_window
    assert total is not None
    return f"{total:,}" + (f" ({total // each} × {each:,})" if each and each < total else "")


def _reference_texts(problem: str) -> list[str]:
    """The seconds and the error of the package's own classical solver."""
    found = _result("reference-seconds").get(problem)
    if found is None:
        return [NOT_RUN, ""]
    error = found["self_convergence"]
    if error is None:
        return [f"formula, {found['seconds']:.1f} s", "exact"]
    return [f"{found['seconds']:.1f} s", f"{error:.0e}"]


def paper_table() -> str:
    """The rows of the paper's Table 1: method, figures, the paper's, the classical solver's."""
    lines = _head(
        "row", "method", "error", "training", "parameters, all windows", "trained",
        "paper's error", "reference solver", "its error",
    )  # fmt: skip
    for problem, name in PAPER_ROWS:
        row = _row("fast", problem)
        own = ["collocation", NOT_RUN, "", "", ""]
        if row is not None and row.error(name) is not None:
            cell = row.good[0]
            method = cell.method or "collocation"
            trained = METHODS[method].trains
            own = [
                method, _seeds(row, name), f"{row.seconds:.0f} s", _parameters(cell), trained
            ]  # fmt: skip
        published = f"{published_error(problem, name, 'hyrespinn'):.2e}"
        texts = [_label(problem, name), *own, published, *_reference_texts(problem)]
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines)


def network_table() -> str:
    """The paper's network with everything trained, on the rows that have been run."""
    lines = _head("row", "error", "estimated", "training", "parameters", "paper's error")
    for problem, name in PAPER_ROWS:
        (row,) = rows_of(_cells("network-fast"), problem, ["hyrespinn"])
        texts = [NOT_RUN, "", "", ""]
        if row.good and row.error(name) is not None:
            estimated = [(cell.estimated_error or {}).get(name) for cell in row.good]
            texts = [
                _seeds(row, name), f"{mean(estimated) or math.nan:.1e}", f"{row.seconds:.0f} s",
                _parameters(row.good[0]),
            ]  # fmt: skip
        published = f"{published_error(problem, name, 'hyrespinn'):.2e}"
        lines.append(f"| {' | '.join([_label(problem, name), *texts, published])} |")
    return "\n".join(lines)


GROUPS = ("gates", "centres", "log_widths", "deep")
"""Of a HyResPINN's parameters: those that are not linear."""


def network_trained() -> str:
    """How far the groups of parameters went, and the gap between fresh points and those of training."""
    lines = _head("row", "seeds", *(group.replace("_", "-") for group in GROUPS), "fresh gap")
    for problem in PAPER_PROBLEMS:
        (row,) = rows_of(_cells("network-fast"), problem, ["hyrespinn"])
        cells = [cell for cell in row.good if cell.trained]
        if cells:
            changes = [mean((c.trained or {}).get(group) for c in cells) for group in GROUPS]
            gap = max(cell.fresh_gap or 0.0 for cell in cells)
            figures = [f"{change:.2f}" for change in changes if change is not None]
            lines.append(f"| `{problem}` | {len(cells)} | {' | '.join(figures)} | {gap:.2g} |")
    return "\n".join(lines)


def flux_table() -> str:
    """The flux errors of the Darcy rows."""
    lines = _head("row", *(f"flux, `{effort}`" for effort in EFFORTS))
    for problem, _ in PAPER_ROWS:
        if problem.startswith("darcy"):
            rows = [_row(effort, problem) for effort in EFFORTS]
            texts = [_seeds(row, "flux") if row else NOT_RUN for row in rows]
            lines.append(f"| `{problem}` | {' | '.join(texts)} |")
    return "\n".join(lines)


def accurate_table() -> str:
    """Errors and seconds of collocation by effort."""
    heads = [text for effort in EFFORTS for text in (f"`{effort}`", "training")]
    lines = _head("row", *heads)
    for problem, name in PAPER_ROWS:
        texts = []
        for row in (_row(effort, problem) for effort in EFFORTS):
            known = row is not None and row.error(name) is not None
            texts += [_seeds(row, name), f"{row.seconds:.0f} s"] if row and known else [NOT_RUN, ""]
        lines.append(f"| {_label(problem, name)} | {' | '.join(texts)} |")
    return "\n".join(lines)


def until_table() -> str:
    """The errors up to parts of the time, where errors grow."""
    shares = ("0.2", "0.4", "0.6", "0.8")
    lines = _head("row", "preset", *(f"t ≤ {s}" for s in shares), "all times")
    for effort in EFFORTS:
        row = _row(effort, "kuramoto-sivashinsky")
        texts = [NOT_RUN, *("" for _ in shares)]
        if row is not None:
            parts = row.errors_until("u")
            texts = [f"{e:.1e}" for e in (*(parts[s] for s in shares), row.error("u"))]
        lines.append(f"| `kuramoto-sivashinsky` | `{effort}` | {' | '.join(texts)} |")
    return "\n".join(lines)


def paper_references() -> str:
    """The Allen–Cahn rows also against the paper's own references (decisions D8 and D9)."""
    lines = _head("row", "preset", "converged reference", "the paper's reference", "paper")
    for problem in ("allen-cahn-dirichlet", "allen-cahn-periodic"):
        for effort in EFFORTS:
            row = _row(effort, problem)
            texts = [NOT_RUN, ""]
            if row is not None:
                theirs = row.error("u"), row.error_of_the_paper("u")
                texts = [f"{e:.2e}" for e in theirs if e is not None]
            published = f"{published_error(problem, 'u', 'hyrespinn'):.2e}"
            lines.append(f"| `{problem}` | `{effort}` | {' | '.join([*texts, published])} |")
    return "\n".join(lines)


def _error_texts(errors: Sequence[float | None]) -> list[str]:
    """The errors of one row, the smallest bold."""
    return bold_smallest([NOT_RUN if e is None else f"{e:.1e}" for e in errors], errors)


def models_general() -> str:
    """All models with the method network, and what collocation has beside them."""
    lines = _head("row", *COMPARED, "collocation, `fast`")
    for problem in PAPER_PROBLEMS:
        rows = rows_of(_cells("network-300s"), problem, COMPARED)
        if not any(row.good for row in rows):
            continue
        errors = [row.error("u") for row in rows]
        texts = _error_texts(errors)
        fast = _row("fast", problem)
        fitted = f"{fast.error('u'):.1e} in {fast.seconds:.0f} s" if fast else NOT_RUN
        lines.append(f"| `{problem}` | {' | '.join(texts)} | {fitted} |")
    return "\n".join(lines)


Entry = dict[str, Any]


def _model_errors(texts_of: Callable[[list[Entry | None]], Iterable[str]]) -> str:
    """A table of ``results/model_errors.json``, from the entries of its models to the texts of a row.

    Entries count that are of the recorded cells, as in the other tables.
    """
    lines = _head("row", *COMPARED)
    found = _result("model_errors")
    recorded = {(c.problem, c.model, c.seed): c for c in _cells("network-300s")}

    def entry(problem: str, model: str) -> Entry | None:
        made, cell = found[problem].get(f"{model}, seed 0"), recorded.get((problem, model, 0))
        return made if made and cell and made["configuration"] == cell.configuration else None

    for problem in (p for p in PAPER_PROBLEMS if p in found):
        texts = texts_of([entry(problem, model) for model in COMPARED])
        lines.append(f"| `{problem}` | {' | '.join(texts)} |")
    return "\n".join(lines)


def models_last() -> str:
    """The geometric mean of each model's error over the last part of its training, and its range."""

    def texts(entries: list[Entry | None]) -> list[str]:
        errors = _error_texts([entry["error"] if entry else None for entry in entries])
        ranges = [f" ({e['smallest']:.1e} to {e['largest']:.1e})" if e else "" for e in entries]
        return [error + between for error, between in zip(errors, ranges, strict=True)]

    return _model_errors(texts)


def models_points() -> str:
    """The mean square of the residual at the last points of the training, and at fresh ones."""
    return _model_errors(
        lambda entries: (
            f"{e['last residual']:.0e}, {e['fresh residual']:.0e}" if e else NOT_RUN
            for e in entries
        )
    )


def models_seeds() -> str:
    """The models that were run with several seeds for 100 seconds."""
    lines = _head("row", "model", "errors, seed by seed", "geometric mean", "steps per second")
    for problem in PAPER_PROBLEMS:
        for row in rows_of(_cells("network-100s"), problem, COMPARED):
            errors = row.errors("u")
            if len(errors) < 2:
                continue
            middle = statistics.geometric_mean(errors)
            each = ", ".join(f"{e:.1e}" for e in errors)
            lines.append(f"| `{problem}` | {row.model} | {each} | {middle:.1e} | {row.rate:.0f} |")
    return "\n".join(lines)


def model_tuning() -> str:
    """The trials of every model: the error, and the steps that fitted into the time."""
    found = _result("model_tuning")
    problems = list(
        dict.fromkeys(p for trials in found.values() for t in trials.values() for p in t)
    )
    lines = _head("model", "shape", *(f"`{problem}`" for problem in problems))
    for model, trials in found.items():
        best = {p: min(t[p]["rel_l2"]["u"] for t in trials.values() if p in t) for p in problems}
        for label, trial in trials.items():
            texts = []
            for problem in problems:
                error = trial[problem]["rel_l2"]["u"]
                text = f"{error:.1e}" if error > best[problem] else f"**{error:.1e}**"
                texts.append(f"{text} ({trial[problem]['steps']:,})")
            lines.append(f"| {model} | {label} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _result(name: str) -> dict[str, Any]:
    """What a benchmark has found so far; nothing where it was never run."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["result"] if path.exists() else {}


def _head(*columns: str) -> list[str]:
    """The first two lines of a table."""
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def problems_engine() -> str:
    lines = _head(
        "problem", "precision", "order", "engine", "nested reverse", "nested forward", "faster by"
    )
    for precision, rows in _result("problems_engine").items():
        for name, r in rows.items():
            rate = " | ".join(f"{v:,.0f}" for v in r["steps per second"].values())
            faster = f"{r['reverse / engine']:.1f}×, {r['forward / engine']:.1f}×"
            lines.append(f"| `{name}` | {precision} | {r['order']} | {rate} | {faster} |")
    return "\n".join(lines)


def optimisers() -> str:
    found = _result("optimisers")
    if not found:
        return "Not run yet."
    names = list(dict.fromkeys(o for runs in found.values() for o in runs))
    lines = _head("problem", *names)
    for name, runs in found.items():
        last = [f"{runs[o]['error'][-1]:.1e}" if o in runs else "" for o in names]
        lines.append(f"| `{name}` | " + " | ".join(last) + " |")
    return "\n".join(lines)


def scaling() -> str:
    lines = _head("what grows", "optimiser", "sizes", "ms per step", "each to the one before")
    for curve, runs in _result("scaling").items():
        for optimiser, rows in runs.items():
            sizes = ", ".join(f"{r['size']:,}" for r in rows)
            cost = ", ".join(f"{r['ms']:.2f}" for r in rows)
            grown = ", ".join(f"{b['ms'] / a['ms']:.2f}" for a, b in pairwise(rows))
            lines.append(f"| {curve} | {optimiser} | {sizes} | {cost} | {grown} |")
    return "\n".join(lines)


def memory() -> str:
    lines = _head("problem", "optimiser", "parameters", "program", "peak, compilation included")
    for name, runs in _result("memory").items():
        for optimiser, r in runs.items():
            held = f"{r['program MB']:.0f} MB | {r['peak MB']:.0f} MB"
            lines.append(f"| `{name}` | {optimiser} | {r['parameters']:,} | {held} |")
    return "\n".join(lines)


def roofline() -> str:
    lines = _head("network", "derivatives", "precision", "engine", "bare products", "ratio")
    for precision, networks in _result("roofline").items():
        for network, cases in networks.items():
            for case, r in cases.items():
                times = f"{r['engine ms']:.2f} ms | {r['products ms']:.2f} ms"
                lines.append(f"| {network} | {case} | {precision} | {times} | {r['ratio']:.2f} |")
    return "\n".join(lines)


def operators() -> str:
    lines = _head("problem", "one by one", "as an operator", "faster by")
    for name, r in _result("operators").items():
        times = f"{r['one by one ms']:.1f} ms | {r['operator ms']:.1f} ms"
        lines.append(f"| `{name}` | {times} | {r['ratio']:.2f}× |")
    return "\n".join(lines)


def ssbroyden() -> str:
    lines = _head(
        "parameters", "step", "loss and gradient", "pass over the matrix", "evaluations", "ratio"
    )
    for r in _result("ssbroyden"):
        times = " | ".join(f"{r[k]:.1f} ms" for k in ("step ms", "loss and gradient ms", "pass ms"))
        ratio = r["step / (loss and gradient + pass)"]
        evaluations = f"{r['evaluations a step']:.2f}"
        lines.append(f"| {r['parameters']:,} | {times} | {evaluations} | {ratio:.2f} |")
    return "\n".join(lines)


def compilation() -> str:
    lines = _head("problem", "optimiser", "tracing", "compiling", "from the cache")
    for name, runs in _result("compilation").items():
        for optimiser, r in runs.items():
            seconds = " | ".join(f"{v:.1f} s" for v in r.values())
            lines.append(f"| `{name}` | {optimiser} | {seconds} |")
    return "\n".join(lines)


def rivals_step() -> str:
    lines = _head("library", "Allen–Cahn", "Kuramoto–Sivashinsky")
    found = _result("rivals-step")
    for library in found.get("allen-cahn", {}):
        rates = [_rate(found.get(case, {}).get(library)) for case in EQUATIONS]
        lines.append(f"| {library} | {' | '.join(rates)} |")
    return "\n".join(lines)


EQUATIONS = ("allen-cahn", "kuramoto-sivashinsky")


def _rate(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "not measured"
    return f"{entry['steps_per_second']:.0f} ({entry['hyrespinn is faster by']:.1f}×)"


def rivals_ssbroyden() -> str:
    lines = _head("library", "steps per second", "evaluations per step")
    for library, entry in _result("rivals-ssbroyden").get("allen-cahn", {}).items():
        lines.append(f"| {library} | {_rate(entry)} | {entry['evaluations a step']:.1f} |")
    return "\n".join(lines)


def rivals_accuracy() -> str:
    lines = _head("problem", "library", "seconds to 1e-3", "best error")
    for problem, entries in _result("rivals-accuracy").items():
        for library, entry in entries.items():
            when = f"not in {entry['limit seconds']:.0f}"
            if entry["seconds"] is not None:
                when = f"{entry['seconds']:.0f}"
            lines.append(f"| `{problem}` | {library} | {when} | {entry['best error']:.1e} |")
    return "\n".join(lines)


def levenberg_marquardt() -> str:
    found = _result("levenberg_marquardt")
    kept = ("seconds a step", "Jacobian, seconds", "lower triangle of JᵀJ, seconds")
    memory = ("peak above the state before, MB", "peak of the process, MB")
    lines = _head("what", "measured")
    lines += [
        f"| {name.replace(' a step', ' per step')} | {found[name]:.2f} |"
        for name in kept
        if name in found
    ]
    lines += [f"| {name} | {found[name]:.0f} |" for name in memory if name in found]
    return "\n".join(lines)


def blocks() -> str:
    found = _result("blocks")
    sizes = list(next(iter(found.values()), {}))
    lines = _head("problem, model", *sizes)
    for name, row in found.items():
        lines.append(f"| {name} | {' | '.join(f'{v:.1f}' for v in row.values())} |")
    return "\n".join(lines)


def _verdicts(part: str) -> dict[str, Any]:
    path = RESULTS / "verdicts.json"
    return json.loads(path.read_text())[part] if path.exists() else {}


def verdict_summary() -> str:
    columns = _verdicts("summary")
    lines = _head("of the runs", *(f"`{method}`" for method in columns))
    for promise in next(iter(columns.values()), {}):
        shares = ("{} of {}".format(*column[promise]) for column in columns.values())
        lines.append(f"| {promise} | {' | '.join(shares)} |")
    return "\n".join(lines)


def verdicts() -> str:
    lines = _head("problem", "kind", "method", "error", "estimate", "verdict", "seconds")
    rows = _verdicts("rows")
    for key in sorted(rows, key=lambda key: key.partition("/")[::-1]):
        (method, _, name), row = key.partition("/"), rows[key]
        if row["verdict"] != "refused":
            figures = ("–" if row[k] is None else f"{row[k]:.1e}" for k in ("error", "estimate"))
            said = ", ".join([row["verdict"], *row["warnings"]])
            seconds = f"{row['training_seconds']:.1f} + {row['estimate_seconds']:.1f}"
            cells = (f"`{name}`", row["kind"], method, *figures, said, seconds)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES = {
    "verdict-summary": verdict_summary,
    "verdicts": verdicts,
    "paper-table": paper_table,
    "network-table": network_table,
    "network-trained": network_trained,
    "accurate-table": accurate_table,
    "flux-table": flux_table,
    "until-table": until_table,
    "paper-references": paper_references,
    "models-general": models_general,
    "models-last": models_last,
    "models-points": models_points,
    "models-seeds": models_seeds,
    "model-tuning": model_tuning,
    "rivals-step": rivals_step,
    "rivals-ssbroyden": rivals_ssbroyden,
    "rivals-accuracy": rivals_accuracy,
    "levenberg-marquardt": levenberg_marquardt,
    "blocks": blocks,
    "problems-engine": problems_engine,
    "optimisers": optimisers,
    "scaling": scaling,
    "memory": memory,
    "roofline": roofline,
    "operators": operators,
    "ssbroyden": ssbroyden,
    "compilation": compilation,
    "comparison": comparison,
    "smoke-bench": smoke_bench,
    "engine": engine,
    "printed-start": printed_start,
    "sampled-modes": sampled_modes,
    "growth": growth,
    "references": references,
    "smoke": smoke,
}


def filled(text: str) -> str:
    """The page with every table made anew."""
    for name, make in TABLES.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        text = re.sub(
            pattern, lambda m, make=make: f"{m[1]}{make()}\n{m[2]}", text, flags=re.DOTALL
        )
    return text


def main() -> None:
    for page in PAGES:
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
