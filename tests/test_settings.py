"""Settings: fields of nested frozen dataclasses by dotted keys, from text, TOML and JSON and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import hyrespinn as hp
import pytest
from hyrespinn.discretise import (
    Adaptive,
    Causal,
    Discretisation,
    Drawn,
    Fixed,
    Given,
    Grid,
    Lifted,
    NeuralTangentKernel,
    ResidualAdaptive,
    Weights,
    Whole,
)
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import PoissonDisk, Sobol
from hyrespinn.models import PINN, HyResPINN, KernelExpansion, Moving, Scattered
from hyrespinn.models.kernels import Gaussian, Matern52
from hyrespinn.optim import Adam, LevenbergMarquardt, Soap, SSBroyden
from hyrespinn.run.config import configure, documentation, settings, with_settings
from hyrespinn.settings import (
    as_text,
    changed,
    described,
    descriptions,
    flat,
    from_json,
    from_toml,
    parse_assignments,
    to_json,
)
from hyrespinn.settings.text import Written, parse_kind, split

BASE = Discretisation(
    HyResPINN(), Drawn(), Lifted(), Weights(), Whole(), (Adam(steps=100), SSBroyden(steps=50))
)


@dataclass(frozen=True)
class Round:
    """A closed union of two kinds, this one with a name that its class says."""

    kind: ClassVar[str] = "circle"
    radius: float = 1.0


@dataclass(frozen=True)
class LongBox:
    """Without a kind of its own."""

    sides: tuple[float, float] = (1.0, 2.0)
    hollow: bool = False


@dataclass(frozen=True)
class Bare:
    """A part that must be given its number."""

    kind: ClassVar[str] = "bare"
    number: int


@dataclass(frozen=True)
class Plain:
    """One field of every sort.

    Args:
        count: How many
            there are.
        rate: How fast.
    """

    count: int = 3
    rate: float = described("how quickly", 0.5)
    on: bool = False
    word: str = "a"
    mode: Literal["slow", "quick", 3] = "slow"
    limit: float | None = None
    ends: tuple[float, ...] = (1.0,)
    pair: tuple[int, int] = (1, 2)
    rows: list[int] = field(default_factory=lambda: [1])
    names: tuple[str, ...] = ()
    free: Any = None
    shape: Round | LongBox | Bare = Round()
    maybe: Round | LongBox | None = None
    inner: LongBox = LongBox()


# Values from text.


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("count", "12", 12),
        ("count", "1e3", 1000),
        ("count", "-4", -4),
        ("count", 7.0, 7),
        ("count", "123456789012345678901", 123456789012345678901),
        ("rate", "1e-3", 1e-3),
        ("rate", 2, 2.0),
        ("on", "yes", True),
        ("on", "False", False),
        ("on", 1, True),
        ("word", "some, words", "some, words"),
        ("mode", "quick", "quick"),
        ("mode", "3", 3),
        ("limit", "none", None),
        ("limit", "None", None),
        ("limit", "2", 2.0),
        ("limit", None, None),
        ("ends", "0.5, 1", (0.5, 1.0)),
        ("ends", "[0.5, 1]", (0.5, 1.0)),
        ("ends", "2", (2.0,)),
        ("ends", [1, 2], (1.0, 2.0)),
        ("pair", "3, 4", (3, 4)),
        ("rows", "3, 4", [3, 4]),
        ("names", "x, y", ("x", "y")),
        ("free", "[[1, 0.5], [0.5, 2]]", [[1, 0.5], [0.5, 2]]),
        ("free", (1, 2), (1, 2)),
        ("shape.radius", "4", 4.0),
        ("inner.hollow", "true", True),
    ],
)
def test_a_text_is_read_as_its_key_is(key, text, value):
    made = changed(Plain(), {key: text})
    found = made
    for name in key.split("."):
        found = getattr(found, name)
    assert found == value
    assert type(found) is type(value)
    assert [k for k, v in flat(made).items() if flat(Plain())[k] != v] in ([key], [])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("count", "many", "count must be a whole number, not 'many'."),
        ("count", "2.5", "count must be a whole number, not '2.5'."),
        ("count", True, "count must be a whole number, not True."),
        ("count", "inf", "count must be finite, not 'inf'."),
        ("rate", "fast", "rate must be a number, not 'fast'."),
        ("rate", "nan", "rate must be finite, not 'nan'."),
        ("rate", None, "rate must be a number, not None."),
        ("on", "perhaps", "on must be true or false, not 'perhaps'."),
        ("word", None, "word must be a text, not None."),
        ("mode", "qick", "mode must be one of slow, quick, 3, not 'qick'."),
        ("limit", "high", "limit must be a number, not 'high'."),
        ("ends", "1, two", "ends as text must be a number or a list of numbers"),
        ("ends", "", "ends as text must be a number or a list of numbers"),
        ("pair", "1", "pair must be a list of 2, not 1."),
        ("pair", "1, 2, 3", "pair must be a list of 2"),
        ("free", "a word", "anything else is set in Python."),
        ("counts", 1, "Unknown setting 'counts'. Did you mean 'count'?"),
        ("count.more", 1, "Unknown setting 'count.more'. Did you mean 'count'?"),
        ("shape", "oval", "Unknown shape 'oval'. Known: bare, circle, long-box."),
        ("shape", 3, "shape must be one of circle, long-box, bare, not 3."),
        ("shape", "bare", "shape of the kind bare needs shape.number too."),
        ("shape.sides", "1, 2", "It is one of shape=long-box, and shape is circle; set shape too."),
        ("maybe.radius", 2, "maybe is none and has no settings yet; set maybe too"),
        ("inner", "circle", "inner must be a long-box, or be set by its own keys, not 'circle'."),
        ("inner.wide", 1, "Unknown setting 'inner.wide'."),
        ("shape", "circle(radius=1", "shape is written name, name:steps or name(setting=value, …)"),
        ("shape", "circle(1)", "circle(1) takes settings as name=value, not '1'."),
        ("shape", "circle(radius=[1)", "The brackets of shape="),
    ],
)  # fmt: skip
def test_a_mistake_is_one_that_a_person_can_mend(key, value, message):
    with pytest.raises(UserError) as caught:
        changed(Plain(), {key: value})
    assert message in str(caught.value)


# Objects.


def test_kinds_bring_their_settings_in_any_order():
    for changes in (
        {"shape": "long-box", "shape.hollow": "true"},
        {"shape.hollow": "true", "shape": "long-box"},
        {"shape": "long-box(hollow=true)"},
        {"shape": {"kind": "long-box", "hollow": True}},
        {"shape": LongBox(hollow=True)},
        {"shape": LongBox(), "shape.hollow": True},
    ):
        assert changed(Plain(), changes).shape == LongBox(hollow=True)


def test_the_present_kind_keeps_its_settings_and_another_has_its_defaults():
    made = replace(Plain(), shape=Round(5.0))
    assert changed(made, {"shape": "circle"}).shape == Round(5.0)
    assert changed(made, {"shape": "long-box"}).shape == LongBox()
    assert changed(made, {"shape": "circle(radius=2)"}).shape == Round(2.0)
    assert changed(made, {"shape": "bare", "shape.number": "3"}).shape == Bare(3)


def test_an_object_that_may_be_none():
    assert flat(Plain())["maybe"] == "none"
    made = changed(Plain(), {"maybe": "circle", "maybe.radius": 3})
    assert made.maybe == Round(3.0)
    assert flat(made)["maybe"] == "circle"
    assert changed(made, {"maybe": "none"}).maybe is None
    assert changed(made, {"maybe": None}).maybe is None
    with pytest.raises(UserError, match=r"Unknown setting 'maybe\.radius'"):
        changed(made, {"maybe": "none", "maybe.radius": 1})


def test_a_prefix_stands_before_all_keys():
    assert flat(Round(), "shape") == {"shape.radius": 1.0}
    assert changed(Round(), {"shape.radius": 2}, "shape") == Round(2.0)
    assert changed(Round(), {"shape": Round(4.0)}, "shape") == Round(4.0)
    for key in ("radius", "shapes.radius"):
        with pytest.raises(UserError, match=r"Known: shape\.radius"):
            changed(Round(), {key: 2}, "shape")


def test_an_object_refuses_its_values_in_its_own_words():
    with pytest.raises(UserError, match="at least one point"):
        changed(BASE, {"points.interior": 0})

    @dataclass(frozen=True)
    class Strict:
        size: int = 1

        def __post_init__(self):
            if self.size > 9:
                raise ValueError("nine is the most")

    with pytest.raises(UserError, match=r"strict cannot be made: nine is the most\."):
        changed(Strict(), {"size": 10})


def test_nothing_to_change_is_the_same_object():
    assert changed(BASE, {}) is BASE
    assert changed(BASE, {"marching": "whole"}) == BASE


# All keys.


def test_flat_lists_every_key_with_its_value_depth_first():
    keys = flat(replace(BASE, points=Drawn(64, sampler=Sobol(), adaptive=ResidualAdaptive(4))))
    assert list(keys)[:3] == ["model", "model.width", "model.blocks"]
    assert keys["model"] == "hyrespinn"
    assert keys["model.kernels"] == "moving"
    assert keys["model.kernels.kernel"] == "wendland-c4"
    assert keys["model.gates.gate.tau"] == 1.0
    assert keys["model.deep.fourier"] == "none"
    assert (keys["points"], keys["points.interior"]) == ("drawn", 64)
    assert (keys["points.sampler"], keys["points.adaptive.pool"]) == ("sobol", 4)
    assert keys["stages"] == "adam,ssbroyden"
    assert (keys["stages.adam.steps"], keys["stages.ssbroyden.steps"]) == (100, 50)
    assert keys["weights.causal"] == "none"
    assert keys["initial_fit"] == "none"
    assert "weights" not in keys, "an object of one class has no kind to choose"


RICH = replace(
    BASE,
    model=HyResPINN(kernels=Moving(3, kernel=Matern52()), deep=None),
    points=Drawn(16, 4, 8, sampler=PoissonDisk(), adaptive=None),
    weights=Weights(balance=NeuralTangentKernel(every=7), causal=Causal(4, (0.1, 1.0))),
    marching=Given(ends=(0.25, 1.0), start="warm"),
    stages=(Adam(steps=3), Soap(steps=4), Adam(steps=5)),
    initial_fit="initial",
)
MADE = {
    "base": BASE,
    "rich": RICH,
    "lattice": configure(hp.problems.Burgers()).discretisation,
    "scattered": configure(hp.problems.Darcy3DNeumann()).discretisation,
    "paper": configure(hp.problems.GreyScott(), preset="paper").discretisation,
    "pirate": configure(hp.problems.Poisson2D(), model="piratenet").discretisation,
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_flat_shows_can_be_given_back_as_text(made):
    texts = {key: as_text(value) for key, value in flat(made).items()}
    assert changed(made, texts) == made
    assert changed(BASE, texts) == made, "and to another object"


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_is_written_as_json_comes_back(made):
    data = json.loads(json.dumps(to_json(made)))
    again = from_json(Discretisation, data)
    assert again == made
    assert hash(again) == hash(made)


def test_objects_are_tagged_with_their_kind():
    data = to_json(RICH)
    assert data["model"]["kind"] == "hyrespinn"
    assert data["model"]["kernels"]["kernel"] == {"kind": "matern52"}
    assert data["model"]["deep"] is None
    assert data["marching"] == {
        "kind": "given", "ends": [0.25, 1.0], "taper": 0.0, "overshoot": 0.0, "start": "warm",
    }  # fmt: skip
    assert [stage["kind"] for stage in data["stages"]] == ["adam", "soap", "adam"]
    assert to_json(Round()) == {"kind": "circle", "radius": 1.0}
    assert to_json(LongBox()) == {"sides": [1.0, 2.0], "hollow": False}
    plain = Plain(free=(1, (2, 3)), maybe=LongBox(hollow=True), names=("x",))
    assert from_json(Plain, json.loads(json.dumps(to_json(plain)))) == plain


def test_only_plain_data_can_be_written():
    with pytest.raises(UserError, match="free cannot be written as JSON"):
        to_json(Plain(free=abs))


def edited(**changes):
    """The JSON of a discretisation with changes of its top level."""
    return {**to_json(BASE), **changes}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "the content must be a table of settings, not []."),
        (edited(extra=1), "Unknown setting 'extra'."),
        ({k: v for k, v in edited().items() if k != "points"}, "points is missing."),
        (edited(in_turn="yes"), "in_turn must be true or false, not 'yes'."),
        (edited(initial_fit="all"), "initial_fit must be one of none, initial, equation"),
        (edited(marching="whole"), "marching must be a table of settings with its kind"),
        (edited(marching={"kind": "hole"}), "Unknown kind of marching 'hole'. Did you mean 'whole'?"),
        (edited(marching={"kind": "fixed"}), "marching.count is missing."),
        (edited(stages={}), "stages must be a list of tables, not {}."),
        (edited(stages=[{"kind": "adam"}]), "stages[0].steps is missing."),
        (edited(stopping={"loss": "0", "relative_loss": 0, "patience": 0}),
         "stopping.loss must be a number, not '0'."),
    ],
)  # fmt: skip
def test_damaged_json_is_named(data, message):
    with pytest.raises(UserError) as caught:
        from_json(Discretisation, data, "The configuration run/config.json")
    assert str(caught.value).startswith("The configuration run/config.json is damaged: ")
    assert message in str(caught.value)


# Sequences.


def test_stages_are_addressed_by_their_kind():
    made = changed(BASE, {"stages.adam.rate": "0.1", "stages.ssbroyden.round_steps": 7})
    assert made.stages == (Adam(steps=100, rate=0.1), SSBroyden(steps=50, round_steps=7))


def test_a_second_stage_of_a_kind_has_a_number():
    made = changed(BASE, {"stages": "adam:5, soap:6, adam:7"})
    assert made.stages == (Adam(steps=5), Soap(steps=6), Adam(steps=7))
    keys = flat(made)
    assert keys["stages"] == "adam,soap,adam"
    assert (keys["stages.adam.steps"], keys["stages.adam-2.steps"]) == (5, 7)
    made = changed(made, {"stages.adam-2.rate": 0.5})
    assert [stage.rate for stage in made.stages] == [5e-3, Soap().rate, 0.5]
    with pytest.raises(UserError, match=r"Unknown setting 'stages\.adam-3\.rate'"):
        changed(made, {"stages.adam-3.rate": 0.5})


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("adam:100, lm(steps=3)", (Adam(steps=100), LevenbergMarquardt(steps=3))),
        (
            "adam(steps=5, rate=5e-3),lm:20,",
            (Adam(steps=5, rate=5e-3), LevenbergMarquardt(steps=20)),
        ),
        ("lm( steps = 4 , damping = 0.1 )", (LevenbergMarquardt(steps=4, damping=0.1),)),
        ("soap", (Soap(),)),
        ("none", None),
        ("", ()),
    ],
)
def test_a_sequence_is_replaced_as_a_whole(text, stages):
    if stages is None:
        with pytest.raises(UserError, match="Unknown optimiser in stages 'none'"):
            changed(BASE, {"stages": text})
        return
    assert changed(BASE, {"stages": text}).stages == stages


def test_the_present_kinds_alone_keep_their_settings():
    assert changed(BASE, {"stages": "adam, ssbroyden"}) == BASE
    assert changed(BASE, {"stages": "ssbroyden, adam"}).stages == (SSBroyden(), Adam())
    made = changed(BASE, {"stages": "adam, ssbroyden", "stages.adam.steps": 9})
    assert made.stages == (Adam(steps=9), SSBroyden(steps=50))


def test_a_sequence_takes_objects_and_tables():
    wanted = (Adam(steps=4), LevenbergMarquardt(steps=5))
    for value in (
        wanted,
        list(wanted),
        [{"kind": "adam", "steps": 4}, {"kind": "lm", "steps": 5}],
        ["adam:4", "lm(steps=5)"],
        (Adam(steps=4), "lm:5"),
    ):
        assert changed(BASE, {"stages": value}).stages == wanted
    assert changed(BASE, {"stages": Adam(steps=4)}).stages == (Adam(steps=4),)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("stages", "adm:10", "Unknown optimiser in stages 'adm'. Did you mean 'adam'?"),
        ("stages", "adam:many", "stages is written name, name:steps or name(setting=value, …)"),
        ("stages", "adam(rate)", "adam(rate) takes settings as name=value, not 'rate'."),
        ("stages", "adam(rate=1", "The brackets of stages=adam(rate=1 do not match."),
        ("stages", "adam)", "The brackets of stages=adam) do not match."),
        ("stages", "adam(rat=1)", "Unknown setting 'stages.rat'. Did you mean 'stages.rate'?"),
        ("stages", "adam(steps=0)", "Adam needs at least one step, not 0."),
        ("stages", 3, "stages must be one of adam"),
        ("stages.lm.damping", 1, "Unknown setting 'stages.lm.damping'."),
        ("stages.adam.stesp", 1, "Did you mean 'stages.adam.steps'?"),
        ("stages.adam.steps", "few", "stages.adam.steps must be a whole number, not 'few'."),
    ],
)
def test_mistakes_in_a_sequence(key, value, message):
    with pytest.raises(UserError) as caught:
        changed(BASE, {key: value})
    assert message in str(caught.value)


# What the parts of a discretisation are called.


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"marching": "fixed", "marching.count": "4"}, "marching", Fixed(4)),
        ({"marching": "given(ends=[0.5, 1], start=warm)"}, "marching",
         Given(ends=(0.5, 1.0), start="warm")),
        ({"marching": "adaptive", "marching.tolerance": "1e-4"}, "marching", Adaptive(tolerance=1e-4)),
        ({"marching": Fixed(4, start="warm")}, "marching", Fixed(4, start="warm")),
        ({"points": "grid", "points.counts": "7, 64"}, "points", Grid((7, 64))),
        ({"points.sampler": "poisson", "points.adaptive": "none"}, "points",
         Drawn(sampler=PoissonDisk(), adaptive=None)),
        ({"points.adaptive.pool": 3}, "points", Drawn(adaptive=ResidualAdaptive(3))),
        ({"weights.balance": "ntk", "weights.balance.every": 5}, "weights",
         Weights(balance=NeuralTangentKernel(every=5))),
        ({"weights.causal": "causal", "weights.causal.tolerances": "0.1, 1"}, "weights",
         Weights(causal=Causal(tolerances=(0.1, 1.0)))),
        ({"model": "pinn", "model.width": 7}, "model", PINN(width=7)),
        ({"model": "kernel-expansion", "model.kernels.count": 9}, "model",
         KernelExpansion(Scattered(9))),
        ({"model.kernels.kernel": "gaussian", "model.deep": "none"}, "model",
         HyResPINN(kernels=Moving(kernel=Gaussian()), deep=None)),
    ],
)  # fmt: skip
def test_parts_by_text_are_the_objects(changes, name, value):
    assert getattr(changed(BASE, changes), name) == value


# Files and words.


def test_a_toml_file_is_a_set_of_changes(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'initial_fit = "initial"\n'
        'stages = "adam:5, lm(steps=3)"\n'
        "[model.kernels]\ncount = 7\n"
        '[marching]\nkind = "fixed"\ncount = 3\n'
        "[points.adaptive]\npool = 2\n"
    )
    changes = from_toml(path)
    assert changes["marching"] == "fixed"
    assert changes["marching.count"] == 3
    assert changed(BASE, changes) == replace(
        BASE,
        model=HyResPINN(kernels=Moving(7)),
        initial_fit="initial",
        stages=(Adam(steps=5), LevenbergMarquardt(steps=3)),
        marching=Fixed(3),
        points=Drawn(adaptive=ResidualAdaptive(2)),
    )


def test_stages_may_be_tables_of_a_toml_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[[stages]]\nkind = "adam"\nsteps = 5\n[[stages]]\nkind = "lm"\nsteps = 3\n')
    assert changed(BASE, from_toml(path)).stages == (Adam(steps=5), LevenbergMarquardt(steps=3))


def test_a_toml_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "run.toml"
    with pytest.raises(UserError, match=r"Cannot read the settings in .*run\.toml: No such file"):
        from_toml(path)
    for content in (b"a = ", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"run\.toml is not a TOML file of settings: "):
            from_toml(path)


def test_assignments():
    texts = ["model.width=8", " problem.nu = 0.1 ", "stages=adam(steps=3), lm:4"]
    assert parse_assignments(texts) == {
        "model.width": "8", "problem.nu": "0.1", "stages": "adam(steps=3), lm:4",
    }  # fmt: skip
    assert parse_assignments(["stages="]) == {"stages": ""}
    assert parse_assignments(["a=1", "a=2"]) == {"a": "2"}, "the last one counts"
    with pytest.raises(UserError, match=r"--set takes key=value, not 'model\.width'\."):
        parse_assignments(["model.width"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "true"),
        (1e-13, "1e-13"),
        (3, "3"),
        ("tanh", "tanh"),
        ((24, 40), "[24, 40]"),
        ([[1, 0.5], [0.5, 2]], "[[1, 0.5], [0.5, 2]]"),
        (("a", "b"), "a,b"),
        ((), "[]"),
    ],
)
def test_values_are_shown_as_they_are_read(value, text):
    assert as_text(value) == text


def test_kinds_as_they_are_written():
    assert parse_kind("k", "adam") == Written("adam", None)
    assert parse_kind("k", " adam : 5 ") == Written("adam", {"steps": "5"})
    assert parse_kind("k", "adam()") == Written("adam", {})
    nested = parse_kind("k", "moving(count=3, kernel=gaussian(), ends=[1, 2])")
    assert nested == Written("moving", {"count": "3", "kernel": "gaussian()", "ends": "[1, 2]"})
    assert split("k", "a(b, [c, d]), e,, f") == ["a(b, [c, d])", "e", "f"]


# What keys are.


def test_keys_are_described_by_their_fields_or_their_class():
    docs = descriptions(Plain())
    assert docs["rate"] == "how quickly", "a field's own words count first"
    assert docs["count"] == "How many there are."
    assert docs["word"] == ""
    assert docs.keys() == flat(Plain()).keys()
    assert Plain().rate == 0.5


def test_a_described_field_may_have_no_default():
    @dataclass(frozen=True)
    class Needed:
        size: int = described("the size", unit="m")

    assert descriptions(Needed(3)) == {"size": "the size"}
    with pytest.raises(TypeError):
        Needed()


def test_the_keys_of_a_run_are_described():
    config = configure(hp.problems.Heat1D(), method="network")
    docs = documentation(config)
    assert docs.keys() >= settings(config).keys()
    assert docs["points.interior"].startswith("Points of the equation")
    assert docs["model.kernels.count"] == "The number of kernels in a block."


# Those that have no effect.


@pytest.mark.parametrize(
    ("problem", "options", "key", "value", "reason"),
    [
        ("heat-1d", {"method": "network"}, "model.harmonics", 2, "no coordinate is periodic"),
        ("heat-1d", {"method": "network"}, "points.boundary", 9,
         "no condition on the boundary is left to the loss"),
        ("poisson-2d", {"method": "network"}, "weights.initial", 2, "poisson-2d has no time"),
        ("poisson-2d", {}, "model.kernels.time_levels", 2, "poisson-2d has no time"),
        ("heat-1d", {"method": "network", "settings": {"marching": "fixed", "marching.growth": 0.0}},
         "marching.first", 0.5, "without marching.growth all windows are equal"),
        ("heat-1d", {"method": "network"}, "stages.trust-region-2.columns", 9,
         "the model has 1515 parameters, and sketches begin above 2500"),
        ("heat-1d", {"preset": "paper"}, "points.adaptive", "residual-adaptive",
         "every step has new points"),
    ],
)  # fmt: skip
def test_idle_keys_are_not_shown_and_refused_with_the_reason(problem, options, key, value, reason):
    config = configure(hp.problems.PROBLEMS[problem](), **options)
    assert key in flat(config.discretisation)
    assert key not in settings(config)
    with pytest.raises(UserError) as caught:
        with_settings(config, {key: value})
    assert str(caught.value) == f"{key} would change nothing: {reason}. Leave it."


def test_a_key_may_come_to_have_an_effect_with_another():
    config = configure(hp.problems.Heat1D(), method="network")
    with pytest.raises(UserError, match="no condition on the boundary is left to the loss"):
        with_settings(config, {"weights.boundary": 3})
    made = with_settings(config, {"weights.boundary": 3, "boundary": "penalty"})
    assert made.discretisation.weights.boundary == 3
    assert "weights.boundary" in settings(made)


def test_the_parameters_of_a_problem_are_keys_too():
    config = configure(hp.problems.Burgers(), method="network")
    made = with_settings(config, {"problem.nu": "0.5", "model.width": "8"})
    assert (made.problem.nu, made.discretisation.model.width) == (0.5, 8)
    assert next(iter(settings(made))).startswith("problem.")
    with pytest.raises(UserError, match=r"Did you mean 'problem\.nu'"):
        with_settings(config, {"problem.un": "0.5"})
