"""Training of models: optimisers, schedules, checkpoints, and games of several players.

`loop` trains one loss with one optimiser. `optimisers` and `schedules` compute its steps, `checkpoints`
reads and writes files, and `adversarial` trains players in turn.
"""
