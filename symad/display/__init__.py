"""Graphs shown to people: tables of every step, and pictures.

`explain` is the start for tables (`writer` makes them, `tables` sets them), `drawing` for pictures
(`layout`, `svg`), `typesetting` for formulas, `pages` for notebooks, `sparsity_pictures` and `recurrences`
for what they say.
"""
