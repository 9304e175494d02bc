"""Pictures of fields: how many panels, what they show, and that holes do not break them."""

from __future__ import annotations

import hyrespinn as hp
import numpy as np
import pytest
from hyrespinn.models.located import Located
from hyrespinn.plots import plot_fields, plot_history, plot_overview
from matplotlib.colors import LogNorm


def panels(figure):
    """The panels without their colour bars."""
    return [ax for ax in figure.axes if ax.get_xlabel()]


def titles(figure):
    return [ax.get_title() for ax in panels(figure)]


def shown(ax):
    """The array that a colour map shows, its first axis to the right."""
    (mesh,) = ax.collections
    return np.ma.filled(np.ma.asarray(mesh.get_array(), float), np.nan).T


def grid(**axes):
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    return axes, dict(zip(axes, mesh, strict=True))


def test_one_dimension_is_a_line_with_the_reference_dashed(tmp_path):
    axes, p = grid(x=np.linspace(0, 1, 7))
    figure = plot_fields(axes, {"u": p["x"] ** 2}, {"u": p["x"]}, "title", tmp_path / "u.png")
    (ax,) = panels(figure)
    solid, dashed = ax.lines
    np.testing.assert_array_equal(solid.get_ydata(), axes["x"] ** 2)
    np.testing.assert_array_equal(dashed.get_ydata(), axes["x"])
    assert (ax.get_xlabel(), ax.get_ylabel(), dashed.get_linestyle()) == ("x", "u", "--")
    assert (tmp_path / "u.png").read_bytes().startswith(b"\x89PNG")


def test_two_fields_without_a_reference_stand_side_by_side():
    axes, p = grid(t=np.linspace(0, 1, 5), x=np.linspace(-1, 1, 7))
    figure = plot_fields(axes, {"u": p["t"] + p["x"], "v": p["x"]})
    assert titles(figure) == ["u", "v"]
    one, two = panels(figure)
    assert (one.get_xlabel(), one.get_ylabel()) == ("t", "x")
    np.testing.assert_array_equal(shown(one), p["t"] + p["x"])
    assert one.get_position().y0 == pytest.approx(two.get_position().y0)
    assert one.get_position().x1 < two.get_position().x0


def test_a_reference_adds_itself_and_the_error():
    axes, p = grid(x=np.linspace(0, 1, 5), y=np.linspace(0, 2, 7))
    known = {"u": p["x"] * p["y"], "q": p["y"]}
    figure = plot_fields(axes, {name: value - 0.25 for name, value in known.items()}, known)
    assert titles(figure) == [
        "u", "reference u", "absolute error", "q", "reference q", "absolute error",
    ]  # fmt: skip
    _, reference, error = panels(figure)[:3]
    np.testing.assert_array_equal(shown(reference), known["u"])
    np.testing.assert_allclose(shown(error), 0.25)
    (mesh,) = panels(figure)[0].collections
    assert mesh.get_clim() == (0, 2), "the solution is drawn in the reference's colours"


@pytest.mark.parametrize("compared", [True, False])
def test_a_ring_is_drawn_with_its_hole(compared, tmp_path):
    """Not a number outside: neither a warning nor an empty picture."""
    ring = hp.Annulus(0.25, 1)
    axes, p = grid(x=np.linspace(-1, 1, 21), y=np.linspace(-1, 1, 23))
    inside = ring.contains(np.stack([p["x"], p["y"]], -1))
    value = np.where(inside, p["x"], np.nan)
    figure = plot_fields(
        axes, {"u": value}, {"u": value + 0.5} if compared else None, path=tmp_path / "ring.pdf"
    )
    assert (tmp_path / "ring.pdf").stat().st_size > 0
    assert len(panels(figure)) == (3 if compared else 1)
    for ax in panels(figure):
        np.testing.assert_array_equal(np.isnan(shown(ax)), ~inside)
        assert ax.get_aspect() == 1
    (mesh,) = panels(figure)[0].collections
    low, high = value[inside].min() + 0.5 * compared, value[inside].max() + 0.5 * compared
    assert mesh.get_clim() == pytest.approx((low, high))


def test_three_dimensions_are_cut_at_a_third(tmp_path):
    axes, p = grid(x=np.linspace(0, 1, 5), y=np.linspace(0, 1, 6), z=np.linspace(0, 3, 7))
    value = p["x"] + 10 * p["y"] + 100 * p["z"]
    figure = plot_fields(axes, {"u": value}, {"u": value}, path=tmp_path / "u.png")
    assert titles(figure) == ["u at z = 1", "reference u", "absolute error"]
    ax = panels(figure)[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")
    np.testing.assert_allclose(shown(ax), value[:, :, 2])


def test_a_film_shows_four_times_and_the_last_one_beside_a_reference(tmp_path):
    axes, p = grid(t=np.linspace(0, 3, 7), x=np.linspace(0, 1, 5), y=np.linspace(0, 1, 6))
    values = {"u": p["t"] * p["x"], "v": p["y"]}
    film = plot_fields(axes, values, path=tmp_path / "film.png")
    times = ["t = 0", "t = 1", "t = 2", "t = 3"]
    assert titles(film) == [f"{f} at {t}" for f in "uv" for t in times]
    for i, ax in enumerate(panels(film)[:4]):
        np.testing.assert_allclose(shown(ax), values["u"][2 * i])
        (mesh,) = ax.collections
        assert mesh.get_clim() == (0, 3), "all times in the same colours"
    compared = plot_fields(axes, values, values)
    assert titles(compared) == [
        "u at t = 3", "reference u", "absolute error",
        "v at t = 3", "reference v", "absolute error",
    ]  # fmt: skip
    np.testing.assert_allclose(shown(panels(compared)[0]), values["u"][-1])


def test_a_film_of_two_times_shows_both_once():
    axes, p = grid(t=np.array([0.0, 1.0]), x=np.linspace(0, 1, 5), y=np.linspace(0, 1, 6))
    assert titles(plot_fields(axes, {"u": p["x"]})) == ["u at t = 0", "u at t = 1"]


def test_a_long_title_is_broken_into_lines():
    axes, p = grid(x=np.linspace(0, 1, 5))
    figure = plot_fields(axes, {"u": p["x"]}, title="a long description " * 8)
    assert "\n" in figure.get_suptitle()
    assert figure.get_suptitle().split() == ["a", "long", "description"] * 8


@pytest.mark.parametrize(("windows", "lines"), [(3, 2), (80, 0)])
def test_windows_are_marked_unless_they_are_too_many(windows, lines):
    rows = [
        {"step": k, "window": k, "stage": "adam", "loss_total": 1.0 / k}
        for k in range(1, windows + 1)
    ]
    (ax,) = plot_history(rows).axes
    assert len(ax.lines) == 1 + lines, "the loss, and where windows end"


def test_errors_are_drawn_on_a_logarithmic_scale_and_none_at_all_plainly(tmp_path):
    axes, p = grid(t=np.linspace(0, 1, 5), x=np.linspace(0, 1, 7))
    known = {"u": p["t"]}
    wrong = plot_fields(axes, {"u": p["t"] + 0.5 * p["x"]}, known, path=tmp_path / "wrong.png")
    (mesh,) = panels(wrong)[2].collections
    assert isinstance(mesh.norm, LogNorm)
    assert mesh.get_clim() == pytest.approx((0.5e-4, 0.5))
    right = plot_fields(axes, known, known, path=tmp_path / "right.png")
    (mesh,) = panels(right)[2].collections
    assert not isinstance(mesh.norm, LogNorm)


ROWS = [
    {"step": k, "stage": "adam", "loss_total": 1.0 / k, "rel_l2_u": 0.1 / k, "phi_alpha_1": 0.5}
    for k in (1, 2, 3)
]


@pytest.mark.parametrize("compared", [True, False])
def test_an_overview_has_kernels_and_gates_under_the_fields(compared, tmp_path):
    axes, p = grid(t=np.linspace(0, 1, 5), x=np.linspace(-1, 1, 7))
    known = {"u": p["t"]} if compared else None
    kernels = [
        Located(np.array([[0.2, 0.0], [0.4, 0.5]]), np.array([[0.1, 0.3]] * 2), np.array([2.0, 1])),
        Located(np.array([[0.7, -0.5]]), np.array([[0.05, 0.1]]), np.array([7.0])),
    ]
    figure = plot_overview(axes, {"u": p["x"]}, known, kernels, ROWS, "run", tmp_path / "run.png")
    drawn = [ax for ax in panels(figure) if "kernels" in ax.get_title()]
    assert [ax.get_title() for ax in drawn] == ["3 kernels, at half their height"]
    (ellipses,) = drawn[0].collections
    np.testing.assert_allclose(ellipses.get_offsets(), [[0.2, 0.0], [0.4, 0.5], [0.7, -0.5]])
    np.testing.assert_allclose(ellipses.get_widths(), [0.2, 0.2, 0.1])
    np.testing.assert_allclose(ellipses.get_heights(), [0.6, 0.6, 0.2])
    assert ellipses.get_edgecolor()[:, 3] == pytest.approx([1.0, 0.575, 1.0])
    assert drawn[0].get_ylim() == (-1, 1)
    labels = [ax.get_ylabel() for ax in panels(figure)]
    assert labels[-2:] == (["gate", "relative error"] if compared else ["x", "gate"])


def test_an_overview_in_one_dimension_shows_kernels_by_place_and_width(tmp_path):
    axes, p = grid(x=np.linspace(0, 1, 9))
    kernels = [Located(np.array([[0.25], [0.75]]), np.array([[0.1], [0.2]]), np.array([1.0, 2.0]))]
    figure = plot_overview(axes, {"u": p["x"]}, None, kernels, ROWS, path=tmp_path / "run.png")
    ax = next(ax for ax in panels(figure) if "kernels" in ax.get_title())
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0.25, 0.5], [0.75, 1.0]])
