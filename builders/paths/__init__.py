"""Relation paths from a knowledge graph: training rows of path proposers, and the path probe."""
