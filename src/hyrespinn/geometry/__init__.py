"""Domains: where an equation holds, what bounds it, and points in and on it."""

from .annulus import Annulus, Disk
from .box import Box, TimeBox
from .domain import Domain

__all__ = ["Annulus", "Box", "Disk", "Domain", "TimeBox"]
