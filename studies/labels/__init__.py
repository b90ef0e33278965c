"""Compares noise labels: ours with published ones, those of two builds, and a checker's verdicts with gold labels."""
