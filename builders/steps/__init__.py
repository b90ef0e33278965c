"""The step-level verifier set."""
