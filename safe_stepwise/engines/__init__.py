"""The engines that answer prompts, one file each, with the response cache and the client that callers use."""
