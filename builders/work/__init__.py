"""What every build shares: chunks, executors, folders, Parquet."""
