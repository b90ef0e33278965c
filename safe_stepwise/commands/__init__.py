"""The command ``safe-stepwise``: one file a command."""
