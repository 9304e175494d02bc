"""Optimisers as pure functions of one parameter vector."""
