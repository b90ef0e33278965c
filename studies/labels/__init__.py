"""Compare noise labels with those of others, and a checker's verdicts with gold labels."""
