"""Fill the tables of README and docs from ``results/``: ``python benchmarks/tables.py``.

A table stands between ``<!-- name -->`` and ``<!-- end -->``; a test checks that it agrees.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGES = (ROOT / "README.md", ROOT / "docs" / "engine.md")


def allen_cahn() -> str:
    lines = [
        "| seed | error | training | steps | parameters |",
        "|---|---|---|---|---|",
    ]
    for path in sorted(RESULTS.glob("allen-cahn-dirichlet-fast-seed*/result.json")):
        r = json.loads(path.read_text())
        lines.append(
            f"| {r['seed']} | {r['rel_l2']['u']:.1e} | {r['seconds']['training']:.0f} s | "
            f"{r['steps']} | {r['n_params']} |"
        )
    return "\n".join(lines)


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


TABLES = {"allen-cahn": allen_cahn, "engine": engine}


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
