"""Make datasets: benchmark readers, knowledge-graph verification, verified splits."""
