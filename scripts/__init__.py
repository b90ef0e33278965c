"""The command lines: ``python -m scripts.NAME --help``."""
