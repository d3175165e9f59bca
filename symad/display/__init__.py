"""Graphs displayed to users: tables of every step, and pictures.

Start with `explain` for tables (`writer` makes them, `tables` formats them), with `drawing` for pictures
(`layout`, `svg`), with `typesetting` for formulas, with `pages` for notebooks; also `sparsity_pictures` and
`recurrences`.
"""
