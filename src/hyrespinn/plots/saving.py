"""How pictures are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the path's ending; a PNG quickly, and a little larger for it."""
    if Path(path).suffix.lower() == ".png":
        figure.savefig(path, dpi=150, pil_kwargs={"compress_level": 1})
    else:
        figure.savefig(path, dpi=150)
