"""What adapters are trained on: one file a kind of row, and what all kinds share."""
