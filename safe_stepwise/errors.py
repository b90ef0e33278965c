"""The two ways an input can be wrong: one stops the command, one concerns a single row."""


class UserError(Exception):
    """A user's mistake: one line that says what, where and how to mend it (exit status 2)."""


class RowError(ValueError):
    """One row cannot be read: the reason. The reader adds file, line or row id."""
