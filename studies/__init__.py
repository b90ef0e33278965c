"""Measurements of our own rules for maintainers (README.md); the product imports none of it."""
