"""Answers over a knowledge graph: paths proposed, followed, verified, scored by four rules."""

PROPOSE, FOLLOW, EXTEND = "propose", "follow", "extend"
"""States of attempts: a proposed path; a path followed without a request; the first hops of a path to propose."""
FIRST_PATH = "first_path"
"""The method without a generator: the first candidate that leads to entities answers."""
