"""Make a release, stage by stage, and put it on the Hub."""
