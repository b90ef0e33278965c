"""Symbolic players, which answer from a question's annotations instead of a model."""
