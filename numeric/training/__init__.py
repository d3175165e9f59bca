"""Training of models: optimisers, schedules, checkpoints, players in turn."""
