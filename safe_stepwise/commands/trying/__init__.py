"""The functions behind the Space's page, which answers questions that visitors type."""
