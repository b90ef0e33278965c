"""Verified benchmarks and noise labels."""
