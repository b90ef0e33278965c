"""Running an evaluation, and what it writes down."""
