"""The version of the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("hyrespinn")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0.0.0"
