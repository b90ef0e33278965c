"""Evaluations of the same questions laid side by side."""
