"""References on disk: made once, found again, noticed when damaged, never in the way."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import hyrespinn as hp
import numpy as np
import pytest
from hyrespinn.problems import Burgers
from hyrespinn.references import cache, make_reference, reference_of
from hyrespinn.references.reference import REFERENCES, Recipe, cache_key, recipe_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache; it does not exist yet."""
    monkeypatch.setenv("HYRESPINN_CACHE", str(tmp_path / "cache" / "deep"))
    return tmp_path / "cache" / "deep"


class Maker:
    """Counts how often it is asked."""

    def __init__(self, **values):
        self.values = values or {"u": np.linspace(0, 1, 12).reshape(3, 4), "v": np.arange(2.0)}
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return {name: value.copy() for name, value in self.values.items()}


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


def test_values_are_made_once_and_found_again(folder):
    make = Maker()
    assert_same(cache.recall("key", make), make.values)
    assert_same(cache.recall("key", make), make.values)
    assert make.calls == 1
    assert [p.name for p in folder.iterdir()] == ["key.npz"], "no temporary file is left"
    other = Maker(u=np.zeros(3))
    assert_same(cache.recall("other", other), other.values)
    assert other.calls == 1
    assert sorted(p.name for p in folder.iterdir()) == ["key.npz", "other.npz"]


def test_what_is_found_is_what_was_stored_not_what_would_be_made(folder):
    cache.recall("key", Maker(u=np.ones(2)))
    assert_same(cache.recall("key", Maker(u=np.zeros(2))), {"u": np.ones(2)})


def test_not_a_number_and_a_scrambled_order_in_memory_are_kept(folder):
    """A reference is not a number outside its domain, and a transposed array is one in memory."""
    make = Maker(u=np.array([1.0, np.nan, -np.inf]), v=np.arange(6.0).reshape(2, 3).T)
    for _ in range(2):
        assert_same(cache.recall("key", make), make.values)
    assert make.calls == 1


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def other_values(path):
    """Whole and readable, but the checksums are those of other values."""
    members = zipfile.ZipFile(path).read("sha256.json")
    np.savez(path, u=np.zeros((3, 4)), v=np.arange(2.0))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("sha256.json", members)


DAMAGES = {
    "a byte in the middle": lambda p: p.write_bytes(flip(p.read_bytes(), p.stat().st_size // 2)),
    "the last byte of an array": lambda p: p.write_bytes(
        flip(p.read_bytes(), p.read_bytes().rindex(np.arange(2.0).tobytes()) + 15)
    ),
    "the first byte": lambda p: p.write_bytes(flip(p.read_bytes(), 0)),
    "cut in half": lambda p: p.write_bytes(p.read_bytes()[: p.stat().st_size // 2]),
    "the end is missing": lambda p: p.write_bytes(p.read_bytes()[:-1]),
    "empty": lambda p: p.write_bytes(b""),
    "text": lambda p: p.write_text("not a reference"),
    "another archive": lambda p: zipped(p, readme="hello"),
    "an empty archive": lambda p: zipped(p),
    "arrays without checksums": lambda p: np.savez(p, u=np.zeros((3, 4)), v=np.arange(2.0)),
    "checksums of other values": other_values,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_noticed_and_replaced(folder, damage):
    make = Maker()
    cache.recall("key", make)
    damage(folder / "key.npz")
    assert_same(cache.recall("key", make), make.values)
    assert make.calls == 2
    assert_same(cache.recall("key", make), make.values)
    assert make.calls == 2, "the damaged file was replaced by a good one"
    assert [p.name for p in folder.iterdir()] == ["key.npz"]


def test_no_wrong_bit_does_any_harm(folder, monkeypatch):
    """Of data, names, or the archive's own tables: never other values, never an exception."""
    monkeypatch.setattr("hyrespinn.files.os.fsync", lambda file: None)  # thousands of them are slow
    make = Maker(u=np.arange(3.0))
    cache.recall("key", make)
    path = folder / "key.npz"
    good = path.read_bytes()
    harm = set()
    for at, bit in product(range(len(good)), (0, 3, 6)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])
        try:
            found = cache.recall("key", make)
        except Exception as error:
            harm.add(repr(error))
            continue
        if not np.array_equal(found["u"], make.values["u"]):
            harm.add(f"other values after bit {bit} of byte {at}")
    assert not harm


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HYRESPINN_CACHE", str(tmp_path / "file" / "below"))
    make = Maker()
    for calls in (1, 2):
        assert_same(cache.recall("key", make), make.values)
        assert make.calls == calls
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_no_reason_to_fail_and_leaves_nothing(folder, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hyrespinn.files.os.fsync", full)
    make = Maker()
    assert_same(cache.recall("key", make), make.values)
    assert list(folder.iterdir()) == []


def test_a_mistake_in_the_making_is_not_hidden(folder):
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.recall("key", broken)
    assert not folder.exists() or not list(folder.iterdir())


def test_the_folder_is_the_one_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("HYRESPINN_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "own"
    monkeypatch.delenv("HYRESPINN_CACHE")
    assert cache.folder() == tmp_path / "xdg" / "hyrespinn"
    monkeypatch.setenv("HYRESPINN_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache.folder() == Path.home() / ".cache" / "hyrespinn"


def test_a_reference_lands_in_the_users_cache(monkeypatch, tmp_path, small):
    monkeypatch.delenv("HYRESPINN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reference_of(small())
    assert [p.name for p in tmp_path.rglob("*.npz")] == [f"{key_of(small())}.npz"]


TWO = """
import sys, time
import numpy as np
from hyrespinn.references import cache
def make():
    print("making", flush=True)
    sys.stdin.readline()  # both are asked to go on at once
    return {"u": np.arange(300_000.0)}
assert cache.recall("key", make)["u"][-1] == 299_999
"""


def test_two_processes_that_make_the_same_end_with_a_readable_file(folder):
    call = [sys.executable, "-c", TWO]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [subprocess.Popen(call, text=True, **pipes) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "making\n", process.communicate()
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        assert process.communicate(timeout=60)[1] == ""
        assert process.returncode == 0
    make = Maker(u=np.zeros(1))
    assert_same(cache.recall("key", make), {"u": np.arange(300_000.0)})
    assert make.calls == 0
    assert [p.name for p in folder.iterdir()] == ["key.npz"]


@pytest.fixture
def small(monkeypatch):
    """A registered problem whose reference takes no time; ``small.calls`` counts."""

    class Small(hp.Problem):
        rate: float = 1.0
        domain = hp.TimeBox(t=(0, 1), x=(0, 1))
        fields = ("u",)
        test_grid = (3, 5)
        calls = []  # noqa: RUF012

        def residual(self, u, p):
            return u.t + self.rate * u

        def conditions(self):
            return [hp.Initial(1.0)]

    def make(problem, axes, nodes):
        Small.calls.append(problem)
        t = np.exp(-problem.rate * axes["t"])
        return {"u": t[:, None] * np.ones(axes["x"].size)}

    recipe = Recipe(make, "formula, {nodes} nodes", {"nodes": 7})
    monkeypatch.setitem(REFERENCES, Small, {"converged": recipe})
    return Small


def test_a_reference_is_made_once_and_only_then_said_to_be(folder, small):
    told = []
    first, second = (reference_of(small(), told.append) for _ in range(2))
    assert len(small.calls) == 1
    (text,) = told
    assert "small" in text
    assert "formula, 7 nodes" in text, "the settings are filled in"
    for reference in (first, second):
        assert reference.description == "formula, 7 nodes"
        np.testing.assert_array_equal(reference.values["u"][:, 0], np.exp([0, -0.5, -1]))
        assert [axis.size for axis in reference.axes.values()] == [3, 5]
    reference_of(small(rate=2.0))
    assert len(small.calls) == 2
    make_reference(small())
    assert len(small.calls) == 3, "asked for afresh, it is made afresh"


def key_of(problem, **settings):
    recipe = recipe_of(problem)
    return cache_key(problem, replace(recipe, settings={**recipe.settings, **settings}))


def test_the_key_is_decided_by_all_that_decides_the_reference(small):
    finer = type("Finer", (small,), {"test_grid": (3, 9)})
    longer = type("Longer", (small,), {"domain": hp.TimeBox(t=(0, 2), x=(0, 1))})
    (recipe,) = REFERENCES[small].values()
    keys = [
        key_of(small()),
        key_of(small(rate=1.5)),
        key_of(small(rate=1.5 + 1e-15)),
        key_of(small(), nodes=8),
        cache_key(finer(), recipe),
        cache_key(longer(), recipe),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(small()) == key_of(small(rate=1.0)) == keys[0]
    assert keys[0].startswith("small-")


def test_the_grid_and_the_domain_alone_change_the_hash(small):
    """With the same name, which is a part of the key by itself."""
    hashes = {
        "usual": (small.domain, (3, 5)),
        "finer": (small.domain, (3, 9)),
        "longer": (hp.TimeBox(t=(0, 2), x=(0, 1)), (3, 5)),
        "hardly longer": (hp.TimeBox(t=(0, 1 + 1e-12), x=(0, 1)), (3, 5)),
    }
    (recipe,) = REFERENCES[small].values()
    found = set()
    for domain, grid in hashes.values():
        variant = type("Same", (small,), {"domain": domain, "test_grid": grid})
        found.add(cache_key(variant(), recipe))
    assert len(found) == len(hashes)


def test_the_key_is_the_same_in_every_process():
    """No set order, no address and no salt gets into it."""
    code = (
        "from hyrespinn.problems import Burgers; from hyrespinn.references.reference import *;"
        "b = Burgers(nu=0.3); print(cache_key(b, recipe_of(b)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == key_of(Burgers(nu=0.3))


def test_the_hash_sees_the_code_of_the_solvers(tmp_path, monkeypatch):
    module = tmp_path / "own_solver.py"
    module.write_text("ORDER = 4\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = cache.digest({"a": 1}, ["own_solver"])
    assert before == cache.digest({"a": 1}, ["own_solver"])
    assert before != cache.digest({"a": 2}, ["own_solver"])
    assert before != cache.digest({"a": 1}, [])
    module.write_text("ORDER = 5\n")
    assert before != cache.digest({"a": 1}, ["own_solver"])
