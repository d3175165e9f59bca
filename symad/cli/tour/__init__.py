"""``symad tour``: the command, its runner, its page, and the stages.

Start with `stage`, which says what a stage is and how to add one. `runner` runs one, `command` all of them;
`kept_outcomes` lets an interrupted tour continue, and `page` writes what was found.
"""
