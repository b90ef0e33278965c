"""Whether the right answers of an evaluation were earned (arXiv 2402.11199); the files' formats: README.md."""
