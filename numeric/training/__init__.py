"""Training of models: optimizers, schedules, checkpoints, and games of several players.

`loop` trains one loss with one optimizer. `optimizers` and `schedules` compute its steps, `checkpoints`
reads and writes files, and `adversarial` trains players in turn.
"""
