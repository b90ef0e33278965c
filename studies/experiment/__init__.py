"""A release that trains its own generator and verifier, read as one experiment."""
