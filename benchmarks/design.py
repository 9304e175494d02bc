"""Figures of the design of ``src``: how much of it is untyped, reflective, branching or cyclic.

``python benchmarks/design.py`` prints them and says which are beyond their bounds;
``--src DIR`` measures another tree, ``--out FILE`` writes them with the commit. ``tests/test_design.py``
asserts the bounds.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from radon.visitors import ComplexityVisitor, Function

SRC = Path(__file__).resolve().parents[1] / "src"


@dataclass(frozen=True)
class Figures:
    """What is measured; the worst of each kind by name."""

    files: int
    lines: int
    longest_file: tuple[str, int]
    explicit_any: int
    reflection: int  # calls of getattr and hasattr
    most_complex: tuple[str, int]
    largest_constructor: tuple[str, int]
    most_fields: tuple[str, int]  # of a dataclass; records have many, and no bound
    import_cycles: list[list[str]]


BOUNDS = {"explicit_any": 250, "reflection": 20, "most_complex": 15, "largest_constructor": 8}


def measure(src: Path = SRC) -> Figures:
    """The figures of all Python files below a folder."""
    files = sorted(src.rglob("*.py"))
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    longest = max(files, key=lambda file: lines[file])
    return Figures(
        files=len(files),
        lines=sum(lines.values()),
        longest_file=(longest.relative_to(src).as_posix(), lines[longest]),
        explicit_any=sum(_names(tree)["Any"] for tree in trees.values()),
        reflection=sum(_calls(tree, "getattr", "hasattr") for tree in trees.values()),
        most_complex=_worst(_complexities(trees, src)),
        largest_constructor=_worst(_constructors(trees, src)),
        most_fields=_worst(_dataclasses(trees, src)),
        import_cycles=_cycles(_imports(trees, src)),
    )


def _worst(found: Iterator[tuple[str, int]]) -> tuple[str, int]:
    return max(found, key=lambda pair: pair[1], default=("", 0))


def _names(tree: ast.AST) -> Counter[str]:
    """How often each name is used; imports of it do not count."""
    found = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    quoted = (
        word
        for node in ast.walk(tree)
        if isinstance(node, ast.arg | ast.AnnAssign) and isinstance(node.annotation, ast.Constant)
        for word in re.findall(r"\w+", str(node.annotation.value))
    )
    return Counter((*found, *quoted))


def _calls(tree: ast.AST, *names: str) -> int:
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        for node in ast.walk(tree)
    )


def _complexities(trees: dict[Path, ast.Module], src: Path) -> Iterator[tuple[str, int]]:
    """The cyclomatic complexity of all functions and methods, as radon counts it."""
    for file, tree in trees.items():
        for block in ComplexityVisitor.from_ast(tree).blocks:
            inner = [block, *getattr(block, "methods", ())]
            for one in inner:
                if isinstance(one, Function):
                    yield f"{file.relative_to(src).as_posix()}:{one.fullname}", one.complexity


def _classes(trees: dict[Path, ast.Module], src: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield f"{file.relative_to(src).as_posix()}:{node.name}", node


def _constructors(trees: dict[Path, ast.Module], src: Path) -> Iterator[tuple[str, int]]:
    """The arguments of every ``__init__``, ``self`` left out."""
    for name, cls in _classes(trees, src):
        for node in cls.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                arguments = node.args
                yield name, len(arguments.args) + len(arguments.kwonlyargs) - 1


def _dataclasses(trees: dict[Path, ast.Module], src: Path) -> Iterator[tuple[str, int]]:
    for name, cls in _classes(trees, src):
        if any("dataclass" in ast.dump(decorator) for decorator in cls.decorator_list):
            yield (
                name,
                sum(
                    isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.dump(node.annotation)
                    for node in cls.body
                ),
            )


def _imports(trees: dict[Path, ast.Module], src: Path) -> dict[str, set[str]]:
    """Which module of the tree imports which when it is loaded."""
    names = {_module(file, src): file for file in trees}
    graph: dict[str, set[str]] = {}
    for file, tree in trees.items():
        own = _module(file, src)
        package = own if file.name == "__init__.py" else own.rpartition(".")[0]
        found = {
            target
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for target in _targets(node, package, names)
        }
        graph[own] = found - {own}
    return graph


def _module(file: Path, src: Path) -> str:
    return ".".join(file.relative_to(src).with_suffix("").parts).removesuffix(".__init__")


def _targets(node: ast.ImportFrom, package: str, names: dict[str, Path]) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        above = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join((*above, *([node.module] if node.module else [])))
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        if inner in names:
            yield inner
        elif base in names:
            yield base


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that import each other, by removing those that import nothing."""
    left = {name: set(found) for name, found in graph.items()}
    while True:
        free = {name for name, found in left.items() if not found & left.keys()}
        if not free:
            break
        left = {name: found for name, found in left.items() if name not in free}
    # What is left imports a cycle, or is in one: those that are imported by nothing go too.
    while True:
        imported = set().union(*left.values()) if left else set()
        if left.keys() <= imported:
            break
        left = {name: found for name, found in left.items() if name in imported}
    return [sorted(left)] if left else []


def beyond(figures: Figures) -> list[str]:
    """Which figures are beyond their bounds."""
    values = asdict(figures)
    worst = {name: v[1] if isinstance(v := values[name], tuple | list) else v for name in BOUNDS}
    wrong = [
        f"{name} is {values[name]}, at most {bound}"
        for name, bound in BOUNDS.items()
        if worst[name] > bound
    ]
    return wrong + [f"import cycle: {' '.join(cycle)}" for cycle in figures.import_cycles]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, default=SRC)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    figures = measure(options.src.resolve())
    content = asdict(figures)
    for name, value in content.items():
        print(f"{name}: {value}")
    for line in beyond(figures):
        print(f"beyond its bound: {line}")
    if options.out is not None:
        revision = ["git", "-C", str(options.src), "rev-parse", "HEAD"]
        found = subprocess.run(revision, capture_output=True, text=True, check=True)
        content["commit"] = found.stdout.strip()
        options.out.write_text(json.dumps(content, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
