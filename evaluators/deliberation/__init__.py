"""Answers over a knowledge graph: paths proposed, followed, thought over, scored by four rules."""
