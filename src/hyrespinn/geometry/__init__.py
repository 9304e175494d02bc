"""Domains: where an equation holds, what bounds it, and points in and on it."""

from .box import Box, TimeBox
from .domain import Domain

__all__ = ["Box", "Domain", "TimeBox"]
