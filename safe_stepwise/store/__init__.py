"""Files, names, progress."""
