"""A corpus to search when evidence is missing: passages, and how well they are found."""
