"""The file is loaded by tests as a person's own, and by nothing else."""

collect_ignore = ["parts.py"]
