"""Make judgements: comparisons of labels, metrics and reports."""
