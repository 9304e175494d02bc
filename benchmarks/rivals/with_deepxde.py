"""DeepXDE's worker, on its PyTorch backend.

DeepXDE computes the residual at all points it is fed, those of the conditions included, and
drops the latter from the loss. The variant ``equal`` feeds the network the initial points alone
and evaluates the residual at its own points; ``plain`` is the library as it comes. ``forward``
is ``equal`` with forward-mode derivatives, an option of the library.
"""

from __future__ import annotations

import sys
from typing import Any

import cases
import deepxde as dde
import numpy as np
import protocol
import torch


def allen_cahn(x: Any, y: Any) -> Any:
    u = value(y)
    u_t = value(dde.grad.jacobian(y, x, i=0, j=0))
    u_xx = value(dde.grad.hessian(y, x, i=1, j=1))
    return u_t - cases.EPSILON * u_xx + cases.REACTION * (u**3 - u)


def kuramoto_sivashinsky(x: Any, y: Any) -> Any:
    u_t = value(dde.grad.jacobian(y, x, i=0, j=0))
    u_x = value(dde.grad.jacobian(y, x, i=0, j=1))
    second = dde.grad.hessian(y, x, i=1, j=1)
    u_xxxx = value(dde.grad.hessian(second, x, i=1, j=1))
    convection = cases.ALPHA * value(y) * u_x
    return u_t + convection + cases.BETA * value(second) + cases.GAMMA * u_xxxx


def burgers(x: Any, y: Any) -> Any:
    u_t = dde.grad.jacobian(y, x, i=0, j=0)
    u_x = dde.grad.jacobian(y, x, i=0, j=1)
    return u_t + value(y) * u_x - cases.NU * dde.grad.hessian(y, x, i=1, j=1)


def value(y: Any) -> Any:
    """The values: forward mode has pairs of values and function."""
    return y[0] if isinstance(y, tuple) else y


RESIDUALS = {
    "allen-cahn": allen_cahn,
    "kuramoto-sivashinsky": kuramoto_sivashinsky,
    "burgers": burgers,
    "allen-cahn-periodic": allen_cahn,
}


class Apart(dde.data.PDE):
    """The residual at its own points and nowhere else; the network is fed the others."""

    def train_next_batch(self, batch_size: Any = None) -> Any:
        if self.train_x is None:
            super().train_next_batch(batch_size)
            self.inside = torch.as_tensor(self.train_x_all).requires_grad_()
            self.train_x = self.train_x_bc
        return self.train_x, self.train_y, self.train_aux_vars

    def losses(
        self, targets: Any, outputs: Any, loss_fn: Any, inputs: Any, model: Any, aux: Any = None
    ) -> Any:
        found = model.net(self.inside)
        assert len(found) == cases.STEP.residual
        assert len(outputs) == cases.STEP.initial
        y = found if aux is None else (found, aux[0])
        residual = self.pde(self.inside, y)
        mismatch = self.bcs[0].error(self.train_x, inputs, outputs, 0, len(outputs))
        return [torch.mean(residual**2), torch.mean(mismatch**2)]


def set_weights(net: Any, size: cases.Size) -> None:
    with torch.no_grad():
        for layer, (weight, bias) in zip(net.linears, cases.weights(size), strict=True):
            layer.weight.copy_(torch.as_tensor(weight.T))
            layer.bias.copy_(torch.as_tensor(bias))


def step(talk: protocol.Channel, name: str, variant: str, threads: int) -> None:
    size = cases.STEP
    torch.set_num_threads(threads)
    dde.config.set_default_float(size.precision)
    if variant == "forward":
        dde.config.set_default_autodiff("forward")
    inside, first, values = cases.points(name, size)
    low, high = cases.EQUATIONS[name].interval
    box = dde.geometry.Rectangle([0, low], [1, high])
    kind = dde.data.PDE if variant == "plain" else Apart
    condition = dde.icbc.PointSetBC(first, values)
    data = kind(box, RESIDUALS[name], condition, anchors=inside)
    net = dde.nn.FNN(size.layers, "tanh", "Glorot normal")
    set_weights(net, size)
    model = dde.Model(data, net)
    model.compile("adam", lr=1e-3, verbose=0)
    model.train(iterations=1, verbose=0)
    first_loss = float(np.sum(model.losshistory.loss_train[0]))

    def advance() -> int:
        # What ``Model.train`` does between two displays of the loss.
        model._train_sgd(10, 10**9, verbose=0)
        return 10

    # The last of the steps of ``_train_sgd`` is always followed by a test; it is left out.
    model._test = lambda verbose=1: None
    counted = len(data.train_x_all)
    assert data.num_bcs == [size.initial]
    protocol.take_turns(
        talk,
        advance,
        parameters=sum(p.numel() for p in net.parameters()),
        **{
            "first loss": first_loss,
            "residual points": counted,
            "residual evaluated at": counted + (size.initial if variant == "plain" else 0),
            "initial points": data.num_bcs[0],
            "threads": torch.get_num_threads(),
            "versions": protocol.versions("deepxde", "torch"),
        },
    )


class Record(dde.callbacks.Callback):
    """The error, from time to time, with the clock stopped."""

    def __init__(self, watch: protocol.Watch, reference: cases.Reference):
        super().__init__()
        self.watch, self.reference = watch, reference

    def on_batch_end(self) -> None:
        if self.watch.due(self.model.train_state.step):
            self.measure()

    def measure(self) -> None:
        self.watch.record(
            self.model.train_state.step,
            lambda: self.reference.error(self.model.predict(self.reference.points)),
        )


def accuracy(talk: protocol.Channel, arguments: list[str]) -> None:
    """The settings of DeepXDE's own examples of these equations, in float64.

    Burgers: 3×20 tanh, 2,540 points inside, 80 on the boundary, 160 at the beginning, Adam at
    1e-3 for 15,000 steps, then L-BFGS. Allen–Cahn: 3×20 tanh, 8,000, 400 and 800 points, the
    conditions built in by x² cos πx + t(1 − x²)·N, Adam for 40,000 steps, then L-BFGS. It holds
    u = −1 at both ends; that solution is 6e-5 away from the periodic one. Adam ends at 40 % of the
    time limit where its steps are not over by then, so that L-BFGS has its share. float64 because
    the library's manual advises it where L-BFGS stops early.
    """
    options = protocol.accuracy_arguments(arguments)
    watch = protocol.Watch(options.begin, options.limit, options.target)
    dde.config.set_default_float("float64")
    dde.config.set_random_seed(options.seed)
    reference = cases.Reference(options.reference)
    geometry = dde.geometry.Rectangle([0, -1], [1, 1])
    net = dde.nn.FNN([2, 20, 20, 20, 1], "tanh", "Glorot normal")
    if options.problem == "burgers":
        data, adam = burgers_data(geometry), 15_000
    else:
        data = dde.data.PDE(geometry, allen_cahn, [], num_domain=8000 + 400 + 800, num_boundary=0)
        adam = 40_000
        net.apply_output_transform(
            lambda z, y: (
                z[:, 1:] ** 2 * torch.cos(np.pi * z[:, 1:]) + z[:, :1] * (1 - z[:, 1:] ** 2) * y
            )
        )
    model = dde.Model(data, net)
    record = Record(watch, reference)
    try:
        model.compile("adam", lr=1e-3, verbose=0)
        while model.train_state.step < adam and watch.seconds < 0.4 * options.limit:
            model.train(iterations=500, display_every=10**9, callbacks=[record], verbose=0)
        dde.optimizers.set_LBFGS_options(maxiter=100)
        stuck = 0
        while stuck < 3:
            model.compile("L-BFGS", verbose=0)
            before = model.train_state.step
            pieces(model, record)
            stuck = stuck + 1 if model.train_state.step <= before + 100 else 0
    except protocol.Over:
        pass
    talk.send(
        **watch.result(),
        setting=" ".join((accuracy.__doc__ or "").split()),
        versions=protocol.versions("deepxde", "torch"),
    )


def pieces(model: Any, record: Record) -> None:
    """L-BFGS, 100 iterations at a time with its memory kept, until it finds nothing lower."""
    while True:
        before = model.train_state.step
        model.train(display_every=10**9, callbacks=[], verbose=0)
        record.set_model(model)
        record.measure()
        if model.train_state.step <= before:
            return


def burgers_data(geometry: Any) -> Any:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (160, 1))
    first = np.concatenate([np.zeros_like(x), x], axis=1)
    t = np.repeat(rng.random((40, 1)), 2, axis=0)
    ends = np.concatenate([t, np.tile([[-1.0], [1.0]], (40, 1))], axis=1)
    conditions = [
        dde.icbc.PointSetBC(first, -np.sin(np.pi * x)),
        dde.icbc.PointSetBC(ends, np.zeros((80, 1))),
    ]
    return dde.data.PDE(geometry, burgers, conditions, num_domain=2540)


if __name__ == "__main__":
    channel = protocol.Channel()
    match sys.argv[1:]:
        case ["step", equation, variant, threads]:
            step(channel, equation, variant, int(threads))
        case ["accuracy", *rest]:
            accuracy(channel, rest)
