"""Presets, run directories and the one entry that solves a problem."""
