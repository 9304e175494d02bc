"""jinns's worker, through ``jinns.solve``.

``solve`` compiles its whole loop at every call; it is compiled once here, for a number of steps,
and called again with the parameters and the state of the optimiser that it returned. Derivatives
are those a user writes in ``equation``: nested ``jax.jvp``, nested ``jax.grad`` as in its own
operators, or ``jax.experimental.jet``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import jinns
import numpy as np
import optax
import protocol
from jax.experimental.jet import jet
from jinns.optimizers import scale_by_SSBroyden_family
from jinns.solver import GetJinnsVariableName

VERSIONS = ("jinns", "jax", "jaxlib", "optax", "equinox")


def by_jvp(u: Callable[[Any], Any], t_x: Any, order: int) -> list[Any]:
    """u_t, then u, u_x, u_xx, … up to an order, by nested forward mode."""
    t, x = jnp.eye(2, dtype=t_x.dtype)
    found = [jax.jvp(u, (t_x,), (t,))[1], u(t_x)]
    for _ in range(order):
        u = partial(lambda u, z: jax.jvp(u, (z,), (x,))[1], u)
        found.append(u(t_x))
    return found


def by_grad(u: Callable[[Any], Any], t_x: Any, order: int) -> list[Any]:
    """The same by nested reverse mode, as in jinns's own operators."""
    found = [jax.grad(u)(t_x)[0], u(t_x)]
    for _ in range(order):
        u = partial(lambda u, z: jax.grad(u)(z)[1], u)
        found.append(u(t_x))
    return found


def by_jet(u: Callable[[Any], Any], t_x: Any, order: int) -> list[Any]:
    """The same by JAX's Taylor mode."""
    t, x = jnp.eye(2, dtype=t_x.dtype)
    series = [x, *[jnp.zeros_like(x)] * (order - 1)]
    value, rest = jet(u, (t_x,), (series,))
    return [jax.jvp(u, (t_x,), (t,))[1], value, *rest]


METHODS = {"jvp": by_jvp, "grad": by_grad, "jet": by_jet}


def allen_cahn(u_t: Any, u: Any, u_x: Any, u_xx: Any) -> Any:
    return u_t - cases.EPSILON * u_xx + cases.REACTION * (u**3 - u)


def kuramoto_sivashinsky(u_t: Any, u: Any, u_x: Any, u_xx: Any, u_xxx: Any, u_xxxx: Any) -> Any:
    return u_t + cases.ALPHA * u * u_x + cases.BETA * u_xx + cases.GAMMA * u_xxxx


def burgers(u_t: Any, u: Any, u_x: Any, u_xx: Any) -> Any:
    return u_t + u * u_x - cases.NU * u_xx


RESIDUALS = {
    "allen-cahn": (allen_cahn, 2),
    "kuramoto-sivashinsky": (kuramoto_sivashinsky, 4),
    "burgers": (burgers, 2),
    "allen-cahn-periodic": (allen_cahn, 2),
}


class Equation(jinns.loss.PDENonStatio):
    """A residual as jinns takes it, at one point."""

    name: str = eqx.field(static=True, kw_only=True)
    method: str = eqx.field(static=True, kw_only=True, default="jvp")

    def equation(self, t_x: Any, u: Any, params: Any) -> Any:
        residual, order = RESIDUALS[self.name]
        found = METHODS[self.method](lambda z: u(z, params)[0], t_x, order)
        return residual(*found)[None]


def network(layers: list[int], key: Any, **transforms: Any) -> tuple[Any, Any]:
    """A tanh network and its parameters."""
    parts: list[tuple[Any, ...]] = []
    for a, b in pairwise(layers):
        parts += [(eqx.nn.Linear, a, b), (jax.nn.tanh,)]
    u, _ = jinns.nn.PINN_MLP.create(
        key=key, eqx_list=tuple(parts[:-1]), eq_type="PDENonStatio", **transforms
    )
    return u, jinns.parameters.Params(nn_params=u.init_params, eq_params={})


def with_weights(params: Any, size: cases.Size) -> Any:
    arrays = [jnp.asarray(a) for w, b in cases.weights(size) for a in (w.T, b)]

    def where(params: Any) -> list[Any]:
        linear = [layer for layer in params.nn_params.layers if hasattr(layer, "weight")]
        return [array for layer in linear for array in (layer.weight, layer.bias)]

    return eqx.tree_at(where, params, arrays)


def mesh(count: int, initial: int, interval: tuple[float, float], **named: Any) -> Any:
    """jinns's generator of points without mini-batches: they stay."""
    low, high = interval
    return jinns.data.CubicMeshPDENonStatio(
        key=jax.random.key(0), n=count, ni=initial, nb=None, dim=1,
        min_pts=(low,), max_pts=(high,), tmin=0.0, tmax=1.0, **named,
    )  # fmt: skip


def callback_value_fn(params: Any, loss: Any, batch: Any) -> Any:
    return loss.evaluate(params, batch)[0]


def callback_grad_fn(params: Any, loss: Any, batch: Any) -> Any:
    return jax.grad(lambda p: loss.evaluate(p, batch)[0])(params)


SSBROYDEN_ARGUMENTS = {
    "value": GetJinnsVariableName("train_loss_value"),
    "grad_pt": GetJinnsVariableName("grads"),
    "value_fn": callback_value_fn,
    "grad_fn": callback_grad_fn,
    "loss": GetJinnsVariableName("loss"),
    "batch": GetJinnsVariableName("batch"),
}


class Run:
    """A training that goes on in pieces of ``solve``."""

    def __init__(self, params: Any, loss: Any, data: Any, optimiser: Any, extra: Any = None):
        self.params, self.loss = params, loss
        # Its counters as arrays, as they come back from ``solve``, so that one program fits all.
        self.data = jax.tree.map(jnp.asarray, data)
        self.optimiser, self.extra = optimiser, extra
        self.state = optimiser.init(params)
        self.programs: dict[int, Any] = {}

    def compile(self, count: int) -> None:
        def piece(params: Any, state: Any, data: Any) -> Any:
            result = jinns.solve(
                n_iter=count, init_params=params, opt_state=state, data=data, loss=self.loss,
                optimizer=self.optimiser, extra_optax_args_and_kwargs=self.extra,
                verbose=False, ahead_of_time=False, print_loss_every=count + 1,
            )  # fmt: skip
            return result[0], result[5], result[3], result[1]

        program = eqx.filter_jit(piece)
        self.programs[count] = program.lower(self.params, self.state, self.data).compile()

    def advance(self, count: int) -> int:
        if count not in self.programs:
            self.compile(count)
        result = self.programs[count](self.params, self.state, self.data)
        self.params, self.state, self.data, self.losses = jax.block_until_ready(result)
        return count

    def restart(self) -> None:
        """The optimiser's state made anew, after a NaN."""
        self.state = self.optimiser.init(self.params)


def prepare(name: str, size: cases.Size, method: str, optimiser: Any, extra: Any = None) -> Run:
    u, params = network(size.layers, jax.random.key(0))
    params = with_weights(params, size)
    inside, first, _ = cases.points(name, size)
    data = mesh(size.residual, size.initial, cases.EQUATIONS[name].interval)
    data = eqx.tree_at(
        lambda d: (d.domain, d.initial), data, (jnp.asarray(inside), jnp.asarray(first[:, 1:]))
    )
    start = {
        "allen-cahn": lambda x: x**2 * jnp.cos(jnp.pi * x),
        "kuramoto-sivashinsky": lambda x: jnp.cos(x) * (1 + jnp.sin(x)),
    }[name]
    loss = jinns.loss.LossPDENonStatio(
        u=u,
        dynamic_loss=Equation(name=name, method=method),
        loss_weights=jinns.loss.LossWeightsPDENonStatio(dyn_loss=1.0, initial_condition=1.0),
        initial_condition_fun=start,
        params=params,
    )
    return Run(params, loss, data, optimiser, extra)


def about(run: Run) -> dict[str, Any]:
    batch = run.data.get_batch()[1]
    return {
        "parameters": sum(a.size for a in jax.tree.leaves(run.params)),
        "first loss": float(run.loss.evaluate(run.params, batch)[0]),
        "residual points": batch.domain_batch.shape[0],
        "initial points": batch.initial_batch.shape[0],
        "versions": protocol.versions(*VERSIONS),
    }


def step(channel: protocol.Channel, name: str, method: str) -> None:
    run = prepare(name, cases.STEP, method, optax.adam(1e-3))
    protocol.take_turns(channel, partial(run.advance, 20), **about(run))


def ssbroyden(channel: protocol.Channel, method: str) -> None:
    jax.config.update("jax_enable_x64", True)
    optimiser = scale_by_SSBroyden_family()
    run = prepare("allen-cahn", cases.SSBROYDEN, method, optimiser, SSBROYDEN_ARGUMENTS)
    told = about(run)

    def more() -> dict[str, Any]:
        """The line search tells of its last step alone, so a few are made one by one, untimed."""
        searched = []
        for _ in range(20):
            run.advance(1)
            searched.append(int(run.state.linesearch_state.info.num_linesearch_steps))
        return {
            "steps": int(run.state.count),
            "loss": float(run.losses[-1]),
            # one at the beginning of a step, those of the search, one at the new point
            "evaluations a step": 2 + float(np.mean(searched)),
        }

    while int(run.state.count) < 100:
        run.advance(10)
    more()
    protocol.take_turns(channel, partial(run.advance, 10), more, **told)


def hard_burgers(t_x: Any, raw: Any, params: Any) -> Any:
    t, x = t_x
    return -jnp.sin(jnp.pi * x) + t * (1 - x**2) * raw


def hard_allen_cahn(t_x: Any, raw: Any, params: Any) -> Any:
    t, x = t_x
    return x**2 * jnp.cos(jnp.pi * x) + t * (1 - x**2) * raw


HARD = {"burgers": hard_burgers, "allen-cahn-periodic": hard_allen_cahn}


def accuracy(channel: protocol.Channel, arguments: list[str]) -> None:
    """Conditions built into the output; Adam 4×64 in float32, or SSBroyden 3×30 in float64.

    The ansatz for Allen–Cahn holds u = −1 at both ends, as DeepXDE's example does; that solution
    is 6e-5 away from the periodic one. Adam: 2,048 of 20,000 points a step, the rate falling from
    1e-3 by 0.9 every 2,000 steps. SSBroyden: 1,000 Adam steps first, then 4,096 points.
    """
    options = protocol.accuracy_arguments(arguments)
    watch = protocol.Watch(options.begin, options.limit, options.target)
    second = options.method == "ssbroyden"
    jax.config.update("jax_enable_x64", second)
    layers = cases.SSBROYDEN.layers if second else cases.STEP.layers
    u, params = network(
        layers, jax.random.key(options.seed), output_transform=HARD[options.problem]
    )
    if second:
        data = mesh(4096, 1, (-1.0, 1.0))
        rate: Any = 5e-3
    else:
        data = mesh(20_000, 1, (-1.0, 1.0), domain_batch_size=2048)
        rate = optax.exponential_decay(1e-3, 2000, 0.9)
    loss = jinns.loss.LossPDENonStatio(
        u=u,
        dynamic_loss=Equation(name=options.problem),
        loss_weights=jinns.loss.LossWeightsPDENonStatio(dyn_loss=1.0),
        params=params,
    )
    reference = cases.Reference(options.reference)
    grid = jnp.asarray(reference.points, float)
    evaluate = jax.jit(jax.vmap(u, (0, None)))
    restarts = 0

    def train(run: Run, total: int, piece: int, done: int) -> None:
        nonlocal restarts
        with watch.compiling():
            run.compile(piece)
        for step in range(done + piece, done + total + 1, piece):
            run.advance(piece)
            if watch.due(step):
                watch.record(step, lambda: reference.error(evaluate(grid, run.params)))
            if not all(bool(jnp.isfinite(a).all()) for a in jax.tree.leaves(run.state)):
                restarts += 1
                run.restart()

    try:
        if second:
            run = Run(params, loss, data, optax.adam(rate))
            train(run, 1000, 50, 0)
            optimiser = scale_by_SSBroyden_family()
            run = Run(run.params, loss, data, optimiser, SSBROYDEN_ARGUMENTS)
            train(run, 10**9, 10, 1000)
        else:
            train(Run(params, loss, data, optax.adam(rate)), 10**9, 50, 0)
    except protocol.Over:
        pass
    setting = (
        "hard conditions, 3×30 tanh, float64, 4096 points, 1000 Adam steps, then SSBroyden"
        if second
        else "hard conditions, 4×64 tanh, float32, Adam 1e-3 falling, 2048 of 20000 points a step"
    )
    channel.send(
        **watch.result(),
        setting=setting,
        restarts=restarts,
        versions=protocol.versions(*VERSIONS),
    )


if __name__ == "__main__":
    talk = protocol.Channel()
    match sys.argv[1:]:
        case ["step", equation, way]:
            step(talk, equation, way)
        case ["ssbroyden", way]:
            ssbroyden(talk, way)
        case ["accuracy", *rest]:
            accuracy(talk, rest)
