"""Training: stages in sequence, one loop, checkpoints."""
