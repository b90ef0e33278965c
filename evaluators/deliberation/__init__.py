"""Answers over a knowledge graph: paths proposed, followed, thought over, scored by four rules."""

PROPOSE, FOLLOW = "propose", "follow"
"""States: a path is proposed; one is carried out, nobody being asked."""
FIRST_PATH = "first_path"
"""The method without a generator: the first candidate that leads somewhere answers."""
