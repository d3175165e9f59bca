"""``symad tour``: the command, its runner, its page, and the stages.

Start with `stage`, which says what a stage is and how to add one. `runner` runs one; `command` runs all of
them and lets an interrupted tour continue; `page` writes what was found.
"""
