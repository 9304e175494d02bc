"""Files that are whole or absent, and archives of arrays that notice damage."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .errors import UserError


def write_atomically(path: Path, write: Callable[[Any], None]) -> None:
    """Write through a temporary file beside ``path``: a reader sees the old file or the new."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(f"Cannot write {path}: {error.strerror or error}.") from error


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2, allow_nan=True) + "\n")


def save_arrays(file: Any, arrays: Mapping[str, np.ndarray], texts: Mapping[str, bytes]) -> None:
    """An uncompressed zip of arrays (as .npy) and other members; zip checks each by CRC."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def load_arrays(path: Path, what: str) -> tuple[dict[str, np.ndarray], dict[str, bytes]]:
    """What :func:`save_arrays` wrote; a damaged file is a :class:`UserError`."""
    arrays: dict[str, np.ndarray] = {}
    texts: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                data = archive.read(name)
                if name.endswith(".npy"):
                    arrays[name[:-4]] = np.load(io.BytesIO(data), allow_pickle=False)
                else:
                    texts[name] = data
    except FileNotFoundError:
        raise UserError(f"There is no {what} at {path}.") from None
    # Flipped bits in the tables of a zip also look like encryption or an unknown method.
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"The {what} {path} is damaged and cannot be read: {error}.") from error
    return arrays, texts
