"""``symad tour``: the command, its runner, its page, and the stages."""
