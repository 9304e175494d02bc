"""Write ``docs/settings.md`` from the docstrings of the classes: ``python docs/scripts/settings.py``.

A setting is a field of one of these classes, and its meaning an entry under ``Args:`` of the class or of
one of its bases. A test checks that the page is up to date and that no setting is without a meaning.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from hyrespinn import discretise, models
from hyrespinn.geometry.sampling import SAMPLERS
from hyrespinn.methods import METHODS
from hyrespinn.models import MODELS
from hyrespinn.models.gates import GATES
from hyrespinn.models.kernels import DISTANCES, KERNELS
from hyrespinn.optim import OPTIMISERS
from hyrespinn.settings import as_text
from hyrespinn.settings.kinds import doc_of

FILE = Path(__file__).parents[1] / "settings.md"

HEAD = """# Settings

<!-- Made by `python docs/scripts/settings.py` from the docstrings; do not edit. -->

What a method chooses for a problem is one `Discretisation`, an object made of objects. Their fields are
the settings: `--set KEY=VALUE …` on the command line, `settings={"KEY": value}` in Python,
`discretisation` in `config.json`.

- A key is the path to a field: `model.kernels.count=64`, `stages.adam.rate=1e-3`, `problem.nu=0.1`.
- A key that holds an object takes the name of its kind, whose fields then have their defaults:
  `marching=fixed marching.count=4`. `none` leaves an optional part out. Python takes objects too:
  `{"marching": hp.discretise.Fixed(4)}`.
- `stages` is a sequence: `stages="soap:500, lm(steps=40, damping=0.1)"`; `stages.lm.steps` is one field.
- `hyrespinn list --keys PROBLEM [--method …] [--set …]` prints the keys that have an effect for a problem.
  A key without one is refused, with the reason.
"""

Part = tuple[str, type]
"""What chooses a class, and the class."""


def parts() -> Iterator[tuple[str, list[Part]]]:
    """The headings of the page, with the classes below each."""
    yield "All", [("", discretise.Discretisation)]
    yield "`model`", [(f"model={n}", c) for n, c in MODELS.items()]
    layouts = [models.Moving, models.Scattered, models.Lattice]
    named = [(f"model.kernels={c.__name__.lower()}", c) for c in layouts]
    yield "`model.kernels`", named
    yield (
        "Parts of models",
        [
            ("model.deep=deep", models.Deep),
            ("model.gates", models.Gates),
            *((f"model.gates.gate={n}", c) for n, c in GATES.items()),
            ("….fourier=fourier", models.Fourier),
            ("….fourier (piratenet)", models.Frequencies),
            ("….factorisation=factorisation", models.Factorisation),
            *((f"….kernel={n}", c) for n, c in KERNELS.items()),
            *((f"….distance={n}", c) for n, c in DISTANCES.items()),
        ],
    )
    yield (
        "`points`",
        [
            ("points=drawn", discretise.Drawn),
            ("points.adaptive=residual-adaptive", discretise.ResidualAdaptive),
            ("points=grid", discretise.Grid),
            *((f"points.sampler={n}", c) for n, c in SAMPLERS.items()),
        ],
    )
    treatments = [discretise.Penalty, discretise.Lifted, discretise.Reflected]
    yield "`boundary`", [(f"boundary={c.kind}", c) for c in treatments]
    balances = [discretise.GradientNorm, discretise.NeuralTangentKernel]
    yield (
        "`weights`",
        [
            ("weights", discretise.Weights),
            *((f"weights.balance={c.kind}", c) for c in balances),
            ("weights.causal=causal", discretise.Causal),
        ],
    )
    marches = [discretise.Whole, discretise.Fixed, discretise.Given, discretise.Adaptive]
    yield "`marching`", [(f"marching={c.kind}", c) for c in marches]
    yield "`stages`", [(f"stages={n}", c) for n, c in OPTIMISERS.items()]
    yield "`stopping`", [("stopping", discretise.Stopping)]
    yield "Methods", [(f"--method {n}", c) for n, c in METHODS.items()]


def prose_of(cls: type) -> str:
    """What the docstring of a class says beside its arguments and examples."""
    text = (inspect.getdoc(cls) or "").split(">>>")[0]
    return _plain(re.sub(r"\nArgs:\n(    .*\n?)*", "\n", text))


def _plain(text: str) -> str:
    """Docstrings have roles and double backticks, Markdown has neither."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return re.sub(r"\s+", " ", text).strip()


def meanings(cls: type) -> dict[str, str]:
    """What the fields of a class are."""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return {field.name: _plain(doc_of(field, cls)) for field in fields if field.init}


def default_of(field: dataclasses.Field[object]) -> str:
    value = field.default
    if value is dataclasses.MISSING:
        return "chosen by the method"
    if dataclasses.is_dataclass(value):
        return f"`{value!r}`" if len(repr(value)) < 40 else f"`{type(value).__name__}(…)`"
    return f"`{as_text(value)}`"


def section(key: str, cls: type) -> list[str]:
    prose = prose_of(cls)
    lines = [f"**`{key}`** (`{cls.__name__}`). {prose}" if key else prose, ""]
    known = meanings(cls)
    if not known:
        return lines
    fields = {f.name: f for f in dataclasses.fields(cls)}
    lines += ["| field | default | meaning |", "|---|---|---|"]
    for name, meaning in known.items():
        text = meaning.replace("|", r"\|")
        lines.append(f"| `{name}` | {default_of(fields[name])} | {text} |")
    return [*lines, ""]


def page() -> str:
    lines = [HEAD]
    for title, classes in parts():
        lines += [f"## {title}", ""]
        for key, cls in classes:
            lines += section(key, cls)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    FILE.write_text(page())
