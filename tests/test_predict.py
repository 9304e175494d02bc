"""Predicting from a file: periodic coordinates are wrapped, the closed domain is accepted."""

from __future__ import annotations

import csv

import hyrespinn as hp
import jax.numpy as jnp
import pytest
from hyrespinn import cli


class Ring(hp.Problem):
    """Diffusion on a ring."""

    domain = hp.TimeBox(t=(0, 1), x=(-1, 1))
    fields = ("u",)

    def residual(self, u, p):
        return u.t - 0.1 * u.xx

    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(jnp.pi * p.x)), hp.Periodic("x")]


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    settings = {"model.width": 6, "points.interior": 64, "stages": "adam:5"}
    solution = hp.solve(Ring(), method="network", progress=False, settings=settings)
    path = tmp_path_factory.mktemp("ring") / "ring.hyres"
    solution.save(path)
    return path


def test_periodic_coordinates_are_wrapped(ring, tmp_path):
    points = tmp_path / "in.csv"
    points.write_text("t,x\n0.5,0.25\n0.5,2.25\n0.5,-3.75\n0,-1\n1,1\n")
    out = tmp_path / "out.csv"
    assert cli.main(["predict", str(ring), "--points", str(points), "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["x"] for row in rows] == ["0.25", "2.25", "-3.75", "-1", "1"]
    assert float(rows[0]["u"]) == pytest.approx(float(rows[1]["u"]), abs=1e-12)
    assert float(rows[0]["u"]) == pytest.approx(float(rows[2]["u"]), abs=1e-12)


def test_time_is_not_periodic(ring, tmp_path, capsys):
    points = tmp_path / "in.csv"
    points.write_text("t,x\n1.5,0.25\n")
    call = ["predict", str(ring), "--points", str(points), "--out", str(tmp_path / "out.csv")]
    assert cli.main(call) == 2
    assert "outside the domain" in capsys.readouterr().err
