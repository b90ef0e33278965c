"""Whether a chain of reasoning follows the graph of its question (arXiv 2402.11199)."""
