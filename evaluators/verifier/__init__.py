"""A verifier's verdicts against labelled steps."""
