"""A trained solution: call it, differentiate it, plot it, save it, load it."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import cloudpickle
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from .derivatives import Taylor, closure, coordinates, parse
from .errors import UserError, unknown
from .files import load_arrays, save_arrays, write_atomically
from .metrics import split_components
from .models import MODELS, Model, ModelSpec
from .models.layers import Series
from .models.located import Located
from .models.parameters import cast
from .models.window import InWindow
from .plots import plot_fields
from .problems.boundary import Ansatz, BoundaryTreatment, treatment_named
from .problems.equation import components
from .problems.problem import Problem, derived_of, problem_named
from .problems.statement import state
from .settings import from_json, to_json

if TYPE_CHECKING:  # matplotlib takes a while to import
    from matplotlib.figure import Figure

Arrays: TypeAlias = Any
"""An array, or a dict of arrays: what is evaluated at points."""
Network: TypeAlias = Callable[[Series], Series]
Evaluate: TypeAlias = Callable[[Network, Array], Arrays]

FORMAT = 5
BATCH = 65536


@dataclass(frozen=True)
class Solution:
    """The fields of a problem as functions that can be evaluated anywhere in its domain.

    ``solution(t=0.5, x=x)`` evaluates, with arrays that broadcast; ``solution.derivative("xx",
    t=0.5, x=x)`` differentiates; ``solution.quantity("flux", x=x, y=y)`` is what the problem
    derives from its fields; ``solution.result`` holds what ``result.json`` does.

    ``model`` is the network; where time was solved in ``windows``, each ``(start, end, length)``,
    it is a tuple of networks, and a time after the ``end`` of the last of them is refused: a run that
    was stopped has no solution there.
    """

    problem: Problem
    model: Model | tuple[Model, ...]
    spec: ModelSpec
    precision: str
    boundary: BoundaryTreatment
    result: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    windows: tuple[tuple[float, float, float], ...] = ()

    @cached_property
    def _ansatz(self) -> Ansatz:
        return self.boundary.impose(state(self.problem)).ansatz

    @property
    def end(self) -> float | None:
        """The last time of windows of time; ``None`` where there are none."""
        return self.windows[-1][1] if self.windows else None

    @property
    def _networks(self) -> tuple[Model, ...]:
        return self.model if isinstance(self.model, tuple) else (self.model,)

    @cached_property
    def _compiled(self) -> dict[str, Evaluate]:
        return {}

    def _x64(self) -> AbstractContextManager[None]:
        return jax.enable_x64(self.precision == "float64")

    def _batched(self, name: str, function: Evaluate, points: np.ndarray) -> Arrays:
        """``function(network, points)`` at ``(n, d)`` points, compiled once for all windows."""
        if not self.windows:
            return self._by(self._networks[0], name, function, points)
        ends = [end for _, end, _ in self.windows]
        # An end belongs to the window it ends; the last one has what rounding puts after it.
        member = np.minimum(np.searchsorted(ends, points[:, 0]), len(ends) - 1)
        results: Arrays = None
        for k, (network, (start, _, length)) in enumerate(
            zip(self._networks, self.windows, strict=True)
        ):
            chosen = member == k
            if results is not None and not chosen.any():
                continue
            with self._x64():
                begin, long = (jnp.asarray(v, self.precision) for v in (start, length))
                inside = InWindow(network, begin, long, self.problem.domain.bounds[0])
            values = self._by(inside, name, function, points[chosen])
            if results is None:
                results = jax.tree.map(
                    lambda v: np.full((len(points), *v.shape[1:]), np.nan, v.dtype), values
                )
            for whole, part in zip(jax.tree.leaves(results), jax.tree.leaves(values), strict=True):
                whole[chosen] = part
        return results

    def _by(self, network: Network, name: str, function: Evaluate, points: np.ndarray) -> Arrays:
        """The function of one network, batch by batch."""
        if name not in self._compiled:
            self._compiled[name] = eqx.filter_jit(function)
        results = []
        with self._x64():
            for begin in range(0, max(len(points), 1), BATCH):
                batch = points[begin : begin + BATCH]
                if not len(batch):  # none at all: shapes alone
                    batch = np.full(
                        (1, points.shape[1]), 0.5 * np.sum(self.problem.domain.bounds[0])
                    )
                # Padded to a power of two, so that few sizes are ever compiled.
                size = max(16, 1 << (len(batch) - 1).bit_length())
                padded = np.concatenate([batch, np.repeat(batch[:1], size - len(batch), axis=0)])
                values = self._compiled[name](network, jnp.asarray(padded, self.precision))
                kept = min(len(batch), len(points) - begin)
                results.append(jax.tree.map(lambda v, n=kept: np.asarray(v)[:n], values))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *results)

    def _evaluate(self, points: np.ndarray, name: str) -> np.ndarray:
        """Values or one derivative of all fields."""
        index = parse(name, self.problem.domain.coordinates) if name else None
        ansatz = self._ansatz

        def evaluate(model: Network, batch: Array) -> Arrays:
            fields = partial(ansatz, model)
            if index is None:
                return fields(batch)
            return fields(coordinates(batch, closure([index], batch.shape[1])))[index]

        return self._batched(name, evaluate, points)

    def derived_at(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """The problem's derived quantities at points ``(n, d)``, each ``(n, components)``."""
        problem, ansatz, statement = self.problem, self._ansatz, state(self.problem)
        if not statement.derived.names:
            return {}
        used = statement.derived.all

        def evaluate(model: Network, batch: Array) -> Arrays:
            series = ansatz(model, coordinates(batch, closure(used, batch.shape[1])))
            assert isinstance(series, Taylor)
            result = derived_of(problem, statement.fields_of(series), statement.point(batch))
            parts = components(result, batch.shape[0])
            return {name: jnp.stack(quantity, axis=-1) for name, quantity in parts.items()}

        return self._batched("derived quantities", evaluate, self._checked(points))

    def at(self, points: np.ndarray, derivative: str = "") -> dict[str, np.ndarray]:
        """All fields at points ``(n, d)``, columns in the order of the domain's coordinates."""
        values = self._evaluate(self._checked(points), derivative)
        return {field: values[:, i] for i, field in enumerate(self.problem.fields)}

    def _checked(self, points: np.ndarray) -> np.ndarray:
        points = np.asarray(points, dtype=float)
        dimension = self.problem.domain.dimension
        if points.ndim != 2 or points.shape[1] != dimension:
            raise UserError(
                f"Points must have shape (n, {dimension}), with columns "
                f"{', '.join(self.problem.domain.coordinates)}; these have {points.shape}."
            )
        if self.end is not None:
            late = points[self.after_end(points), 0]
            if late.size:
                raise UserError(
                    f"{late.size} of {len(points)} points are at times for which there is no "
                    f"solution, the latest at {late.max():g}; {self.until()}."
                )
        return points

    def after_end(self, points: np.ndarray) -> np.ndarray:
        """A mark for each of the points ``(n, d)`` that is later than what was solved."""
        if self.end is None:
            return np.zeros(len(points), bool)
        begin, last = self.problem.domain.bounds[0]
        return points[:, 0] > self.end + 1e-9 * (last - begin)

    def until(self) -> str:
        """Up to which time there is a solution and, where that is not all, what to do."""
        name, last = self.problem.domain.coordinates[0], self.problem.domain.bounds[0][1]
        if self.end == last:
            return f"it goes up to {name} = {last:g}, the end of time"
        return (
            f"it goes up to {name} = {self.end:g} of {last:g}, where the run was stopped: go on with "
            "`hyrespinn resume` or hp.resume, or leave out later times"
        )

    def _broadcast(self, arguments: Mapping[str, ArrayLike]) -> tuple[np.ndarray, tuple[int, ...]]:
        names = self.problem.domain.coordinates
        if set(arguments) != set(names):
            raise UserError(
                f"Give every coordinate by name: {', '.join(names)}; got "
                f"{', '.join(arguments) or 'none'}."
            )
        arrays = np.broadcast_arrays(*(np.asarray(arguments[n], dtype=float) for n in names))
        return np.stack([a.ravel() for a in arrays], axis=1), arrays[0].shape

    def __call__(self, **coordinates: ArrayLike) -> Any:
        """The field at these coordinates; with several fields, a dict of them."""
        points, shape = self._broadcast(coordinates)
        values = {field: v.reshape(shape) for field, v in self.at(points).items()}
        return next(iter(values.values())) if len(values) == 1 else values

    def derivative(
        self, name: str, field: str | None = None, **coordinates: ArrayLike
    ) -> np.ndarray:
        """A derivative such as ``"xx"`` or ``"tx"`` of a field (the only one, or ``field``)."""
        if field is None and len(self.problem.fields) > 1:
            raise UserError(f"Say which field: one of {', '.join(self.problem.fields)}.")
        points, shape = self._broadcast(coordinates)
        return self.at(points, name)[field or self.problem.fields[0]].reshape(shape)

    def grid(self, **counts: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Axes with these numbers of points and the fields on their grid, time first.

        The time of a run that was stopped ends where its solution does.
        """
        domain = self.problem.domain
        wanted = tuple(counts.get(c, 101) for c in domain.coordinates)
        axes = dict(
            zip(domain.coordinates, domain.grid(wanted, (False,) * domain.dimension), strict=True)
        )
        if self.end is not None and self.end < domain.bounds[0][1]:
            time = domain.coordinates[0]
            axes[time] = np.linspace(domain.bounds[0][0], self.end, axes[time].size)
        return axes, self.on_axes(axes)

    def on_axes(self, axes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The fields on the grid that the axes span; not a number outside the domain."""
        return self._on_axes(axes, self.at)

    def derived_on_axes(self, axes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The derived quantities on a grid, their components on a last axis."""
        return self._on_axes(axes, self.derived_at)

    def _on_axes(
        self,
        axes: Mapping[str, np.ndarray],
        evaluate: Callable[[np.ndarray], dict[str, np.ndarray]],
    ) -> dict[str, np.ndarray]:
        mesh = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1)
        inside = self.problem.domain.contains(mesh)
        result = {}
        for name, values in evaluate(mesh[inside]).items():
            whole = np.full((*inside.shape, *values.shape[1:]), np.nan, values.dtype)
            whole[inside] = values
            result[name] = whole
        return result

    def quantity(self, name: str, **coordinates: ArrayLike) -> np.ndarray:
        """A derived quantity, such as the flux of a Darcy problem; its components on a last axis."""
        points, shape = self._broadcast(coordinates)
        values = self.derived_at(points)
        if name not in values:
            raise unknown("derived quantity", name, values)
        return values[name].reshape(*shape, values[name].shape[-1])

    @cached_property
    def kernels(self) -> tuple[Located, ...]:
        """Where the kernels of each window's network lie in the domain; nothing for one without any."""
        found = [network.located() for network in self._networks]
        if not self.windows:
            return tuple(one for one in found if one is not None)
        time = self.problem.domain.bounds[0]
        return tuple(
            one.in_window(start, length, time)
            for one, (start, _, length) in zip(found, self.windows, strict=True)
            if one is not None
        )

    def plot(self, path: str | Path | None = None, **counts: int) -> Figure:
        """A picture of the fields and derived quantities on a grid; saved where a path is given."""
        axes, values = self.grid(**counts)
        parts = split_components(axes, self.derived_on_axes(axes))
        return plot_fields(axes, {**values, **parts}, title=self.problem.name, path=path)

    def save(self, path: str | Path) -> None:
        """Write everything needed to evaluate the solution in another process."""
        MODELS.name_of(self.spec)  # a file cannot say what a model without a name is
        leaves = [np.asarray(a) for a in jax.tree.leaves(eqx.filter(self.model, eqx.is_array))]
        spec = {
            "format": FORMAT,
            "model": to_json(self.spec),
            "precision": self.precision,
            "boundary": self.boundary.kind,
            "result": dict(self.result),
            "windows": self.windows,
            **problem_spec(self.problem),
        }
        members = {"solution.json": json.dumps(spec, indent=2).encode()}
        if "problem_parameters" not in spec:
            members["problem.pickle"] = pickle_problem(self.problem)
        arrays = {f"{i:05d}": leaf for i, leaf in enumerate(leaves)}
        write_atomically(Path(path), lambda file: save_arrays(file, arrays, members))

    @classmethod
    def load(cls, path: str | Path, problem: Problem | None = None) -> Solution:
        """Read a saved solution.

        A built-in problem is rebuilt from its name and parameters. One's own problem is stored as
        pickled code, which Python executes on loading: load such files only from people you
        trust, or pass the problem yourself, and the stored code is not touched.
        """
        arrays, members = load_arrays(Path(path), "solution")
        try:
            spec = json.loads(members["solution.json"])
            if spec["format"] > FORMAT:
                raise UserError(
                    f"The solution {path} was written by a newer version of hyrespinn (its format is "
                    f"{spec['format']}, this version reads up to {FORMAT}); update the package."
                )
            if spec["format"] < FORMAT:
                raise UserError(
                    f"The solution {path} was written by an earlier version of hyrespinn, whose "
                    "networks this one does not have; solve the problem again."
                )
            config = _specification(spec["model"])
            if problem is None:
                problem = problem_from(spec, members.get("problem.pickle"))
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise UserError(f"The solution {path} is damaged: {error!r}.") from error
        with jax.enable_x64(spec["precision"] == "float64"):
            boundary = treatment_named(spec["boundary"])
            inputs = boundary.inputs(state(problem))
            model = cast(config.build(inputs, jax.random.key(0)), spec["precision"])
            windows = tuple((a, b, c) for a, b, c in spec["windows"])
            variable, rest = eqx.partition((model,) * max(1, len(windows)), eqx.is_array)
            leaves, structure = jax.tree.flatten(variable)
            stored = [jnp.asarray(arrays[name]) for name in sorted(arrays)]
            if [a.shape for a in stored] != [leaf.shape for leaf in leaves]:
                raise UserError(f"The solution {path} does not fit the problem {problem.name}.")
            networks = eqx.combine(jax.tree.unflatten(structure, stored), rest)
        return cls(
            problem,
            networks if windows else networks[0],
            config,
            spec["precision"],
            boundary,
            spec["result"],
            windows,
        )


def _specification(content: object) -> ModelSpec:
    spec = from_json(ModelSpec, content, "The model's specification")
    assert isinstance(spec, ModelSpec)
    return spec


def problem_spec(problem: Problem) -> dict[str, Any]:
    """The problem as JSON where that is possible: a registered name and plain parameters."""
    spec: dict[str, Any] = {"problem": problem.name}
    try:
        if problem_named(problem.name) is type(problem):
            json.dumps(problem.parameters())
            spec["problem_parameters"] = problem.parameters()
    except (UserError, TypeError):
        pass
    return spec


def pickle_problem(problem: Problem) -> bytes:
    """One's own problem with the code of its classes, so that another process needs no file."""
    names = {cls.__module__ for cls in type(problem).__mro__}
    own = [
        sys.modules[name]
        for name in names - {"builtins", "__main__"}
        if name.partition(".")[0] != __package__ and name in sys.modules
    ]
    for module in own:
        cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps(problem)
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


def problem_from(spec: Mapping[str, Any], pickled: bytes | None) -> Problem:
    """The problem that :func:`problem_spec` and :func:`pickle_problem` described."""
    if "problem_parameters" in spec:
        return problem_named(spec["problem"])(**spec["problem_parameters"])
    if pickled is None:
        raise UserError(f"The problem {spec['problem']!r} is not stored here; pass it as problem=.")
    try:
        return cloudpickle.loads(pickled)
    except Exception as error:
        raise UserError(
            f"The code of the problem {spec['problem']!r} cannot be loaded here ({error}); pass the "
            "problem yourself, as Solution.load(path, problem=…)."
        ) from error
