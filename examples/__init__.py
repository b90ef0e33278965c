"""Worked examples, each a file that the tests run, without a network or a GPU."""
