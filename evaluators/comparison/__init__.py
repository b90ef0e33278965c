"""Systems compared: tables, tests, plots, the report."""
