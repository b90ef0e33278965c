"""What follows from what passages or triples state: local graphs, hops, comparisons, paths."""
