"""Make adapters: recipes, LoRA or whole models, with TRL; resumable, with a record of the run."""
