"""What follows from what passages state: local graphs, hops, comparisons; graph stores, relation paths."""
