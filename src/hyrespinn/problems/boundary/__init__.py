"""How conditions on the boundary enter a solution."""

from ...errors import unknown
from .lifted import Lifted
from .penalty import Penalty
from .reflected import Reflected
from .treatment import Ansatz, BoundaryTreatment, Imposed

TREATMENTS: dict[str, BoundaryTreatment] = {
    treatment.kind: treatment for treatment in (Penalty(), Lifted(), Reflected())
}


def treatment_named(kind: str) -> BoundaryTreatment:
    """
    >>> treatment_named("lifted")
    Lifted()
    """
    if kind not in TREATMENTS:
        raise unknown("boundary treatment", kind, TREATMENTS)
    return TREATMENTS[kind]


__all__ = [
    "TREATMENTS",
    "Ansatz",
    "BoundaryTreatment",
    "Imposed",
    "Lifted",
    "Penalty",
    "Reflected",
    "treatment_named",
]
