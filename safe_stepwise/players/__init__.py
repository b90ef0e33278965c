"""Symbolic players: a question's annotations in a model's place."""
