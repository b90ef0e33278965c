"""Make adapters: TRL recipes (the trainer comes with a later release)."""
