"""hyrespinn: solve partial differential equations with hybrid residual networks.

>>> import hyrespinn as hp
>>> "allen-cahn-dirichlet" in hp.problems.PROBLEMS
True

Names are imported when they are first used, so that ``import hyrespinn`` and ``hyrespinn --help`` cost
next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .phases import IMPORTS

if TYPE_CHECKING:
    from . import discretise, methods, models, optim, problems
    from .discretise import Discretisation
    from .errors import UserError
    from .geometry import Annulus, Box, Disk, Domain, TimeBox
    from .methods import Method
    from .models import HyResPINN
    from .problems import (
        Boundary,
        Condition,
        Dirichlet,
        Initial,
        Interface,
        MeanValue,
        Neumann,
        Periodic,
        Problem,
        places,
    )
    from .registry import register
    from .run.config import configure, match_parameters
    from .run.solve import resume, solve
    from .solution import Solution
    from .version import __version__ as __version__

_NAMES = {
    "discretise": ("Discretisation",),
    "errors": ("UserError",),
    "geometry": ("Annulus", "Box", "Disk", "Domain", "TimeBox"),
    "methods": ("Method",),
    "models": ("HyResPINN",),
    "problems": (
        "Boundary", "Condition", "Dirichlet", "Initial", "Interface", "MeanValue", "Neumann",
        "Periodic", "Problem", "places",
    ),
    "registry": ("register",),
    "run.config": ("configure", "match_parameters"),
    "run.solve": ("resume", "solve"),
    "solution": ("Solution",),
    "version": ("__version__",),
}  # fmt: skip
_MODULES = ("discretise", "methods", "models", "optim", "problems")
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Annulus",
    "Boundary",
    "Box",
    "Condition",
    "Dirichlet",
    "Discretisation",
    "Disk",
    "Domain",
    "HyResPINN",
    "Initial",
    "Interface",
    "MeanValue",
    "Method",
    "Neumann",
    "Periodic",
    "Problem",
    "Solution",
    "TimeBox",
    "UserError",
    "configure",
    "discretise",
    "match_parameters",
    "methods",
    "models",
    "optim",
    "places",
    "problems",
    "register",
    "resume",
    "solve",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES and name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with IMPORTS.measured():
        module = import_module(f".{_HOMES.get(name, name)}", __name__)
    if name in _MODULES:
        return module
    value = vars(module)[name]
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
