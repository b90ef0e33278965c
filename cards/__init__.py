"""The words on the Hub: typed cards, filled from the statistics of the run that made the data."""
