"""Compare noise labels, ours with published ones or those of two builds, and a checker's verdicts with gold labels."""
