"""Stepwise atomic feedback for multi-hop question answering: the runtime part of the toolkit."""

__version__ = "0.1.0"
