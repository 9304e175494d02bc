"""Classes by name: one decorator for all kinds, names that stay what they are."""

from __future__ import annotations

import hyrespinn as hp
import pytest
from hyrespinn.errors import UserError
from hyrespinn.geometry.sampling import Sampler
from hyrespinn.problems import PROBLEMS, AllenCahnDirichlet
from hyrespinn.registry import Registry, register, registered_name, registry_for, registry_of
from hyrespinn.run.loading import load_problem


class Shape: ...


class Colour: ...


@pytest.fixture
def shapes() -> Registry[Shape]:
    return Registry("shape", Shape)


@pytest.fixture
def colours() -> Registry[Colour]:
    return Registry("colour", Colour)


def new(name: str, base: type, module: str = __name__) -> type:
    return type(name, (base,), {"__module__": module})


def test_one_decorator_finds_the_registry_by_the_base(shapes, colours):
    @register("square")
    class Square(Shape): ...

    @register("red")
    class Red(Colour): ...

    assert dict(shapes) == {"square": Square}
    assert dict(colours) == {"red": Red}


def test_a_registry_is_a_mapping_in_the_order_of_registration(shapes):
    classes = {name: new(name.title(), Shape) for name in ("c", "a", "b")}
    for name, cls in classes.items():
        shapes.register(name, cls)
    assert list(shapes.items()) == list(classes.items())
    assert len(shapes) == 3
    assert "a" in shapes
    assert "d" not in shapes
    assert shapes.get("a") is classes["a"]
    assert shapes.get("d") is None
    assert shapes.get("d", Shape) is Shape
    assert repr(shapes) == "Registry('shape': c, a, b)"


def test_an_unknown_name_has_the_nearest_one_in_its_message(shapes):
    shapes.register("square", new("Square", Shape))
    with pytest.raises(UserError, match=r"Unknown shape 'sqare'\. Did you mean 'square'\?"):
        shapes["sqare"]


def test_the_name_of_a_class_and_of_an_object(shapes):
    cls = new("Square", Shape)
    shapes.register("square", cls)
    assert shapes.name_of(cls) == shapes.name_of(cls()) == "square"
    with pytest.raises(UserError, match=r"Circle has no name as a shape; write @register\("):
        shapes.name_of(new("Circle", Shape))


def test_a_derived_class_does_not_have_the_name_of_its_base(shapes):
    cls = new("Square", Shape)
    shapes.register("square", cls)
    with pytest.raises(UserError, match="has no name"):
        shapes.name_of(new("Rhombus", cls))


def test_the_registered_name_of_a_class_if_it_has_one(shapes):
    cls = new("Square", Shape)
    shapes.register("square", cls)
    assert registered_name(cls) == "square"
    assert registered_name(new("Rhombus", cls)) is None
    assert registered_name(int) is None


def test_a_class_of_no_known_base_is_told_the_bases(shapes):
    with pytest.raises(UserError, match=r"derive it from one of the bases: .*test_registry\.Shape"):
        register("three")(int)


def test_the_nearest_base_decides(shapes):
    class Polygon(Shape): ...

    polygons = Registry("polygon", Polygon)
    assert registry_for(new("Square", Polygon)) is polygons
    assert registry_of(Polygon) is polygons
    assert registry_for(new("Circle", Shape)) is shapes
    assert registry_of(new("Circle", Shape)) is None
    assert registry_of("no class") is None


def test_only_classes_of_the_base_are_taken(shapes):
    for wrong in (Colour, Shape()):
        with pytest.raises(UserError, match=r"A shape is a class derived from .*Shape, not "):
            shapes.register("red", wrong)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a,b", "a:1", "a(b)", "a=b", "-a", "none"])
def test_a_name_can_be_part_of_a_key(name, shapes):
    with pytest.raises(UserError, match="cannot be the name of a shape"):
        shapes.register(name, new("Square", Shape))


def test_a_class_that_is_loaded_again_replaces_the_old_one_in_its_place(shapes):
    old, other, again = new("Square", Shape), new("Circle", Shape), new("Square", Shape)
    shapes.register("square", old)
    shapes.register("circle", other)
    shapes.register("square", again)
    assert list(shapes.values()) == [again, other]


def test_a_file_may_be_loaded_under_another_name_of_the_module(shapes):
    again = new("Square", Shape, "hyrespinn_user_shapes")
    shapes.register("square", new("Square", Shape, "shapes"))
    shapes.register("square", again)
    assert shapes["square"] is again


@pytest.mark.parametrize(
    ("taken", "then"),
    [
        (("Square", "shapes"), ("Circle", "shapes")),
        (("Square", "hyrespinn.shapes"), ("Square", "shapes")),
        (("Square", "hyrespinn.shapes"), ("Circle", "hyrespinn.shapes")),
    ],
)
def test_another_class_cannot_take_a_name(taken, then, shapes):
    first = new(taken[0], Shape, taken[1])
    shapes.register("square", first)
    with pytest.raises(UserError, match=r"The shape name 'square' is taken by .*shapes\.Square;"):
        shapes.register("square", new(then[0], Shape, then[1]))
    assert shapes["square"] is first


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (hp.Problem, "heat-1d"),
        (hp.Method, "network"),
        (hp.models.ModelSpec, "hyrespinn"),
        (hp.models.Gate, "sigmoid"),
        (hp.models.kernels.Kernel, "gaussian"),
        (hp.models.kernels.Distance, "diagonal"),
        (hp.optim.Optimiser, "adam"),
        (Sampler, "kronecker"),
    ],
)
def test_every_kind_has_one_registry_and_the_same_decorator(base, name, monkeypatch):
    registry = registry_of(base)
    assert name in registry
    monkeypatch.setattr(registry, "_classes", dict(registry))
    mine = hp.register("my-own")(new("Mine", base))
    assert registry["my-own"] is mine
    assert registered_name(mine) == "my-own"
    with pytest.raises(UserError, match=f"The {registry.what} name '{name}' is taken by hyrespinn"):
        hp.register(name)(new("Other", base))


def test_a_built_in_problem_cannot_be_replaced():
    with pytest.raises(UserError, match="'allen-cahn-dirichlet' is taken by hyrespinn"):

        @hp.register("allen-cahn-dirichlet")
        class Mine(hp.Problem): ...

    assert PROBLEMS["allen-cahn-dirichlet"] is AllenCahnDirichlet


def test_a_person_s_file_may_be_loaded_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(PROBLEMS, "_classes", dict(PROBLEMS))
    path = tmp_path / "twice.py"
    path.write_text(
        "import hyrespinn as hp\n"
        "@hp.register('loaded-twice')\n"
        "class Twice(hp.Problem):\n"
        "    domain = hp.Box(x=(0, 1))\n"
        "    fields = ('u',)\n"
    )
    first, second = (load_problem(f"{path}:Twice") for _ in range(2))
    assert type(first) is not type(second)
    assert PROBLEMS["loaded-twice"] is type(second)
    assert second.name == "loaded-twice"
