"""What answers prompts: one file an engine, a response cache, and the client that callers use."""
