"""Benchmarks: many runs, and the tables that compare them."""
