"""A model's verdicts on relation paths, valid and corrupted (arXiv 2402.11199, section 3.1)."""
