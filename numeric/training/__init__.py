"""Training of models: optimisers, schedules, checkpoints, players in turn.

`loop` is the start: one optimiser, one loss. `optimisers` and `schedules` are its steps, `checkpoints`
files, `adversarial` two players in turn.
"""
