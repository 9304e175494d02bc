"""Runs: settings, directories, solving and resuming."""
