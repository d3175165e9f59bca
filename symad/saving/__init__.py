"""Graphs as files. Loading never evaluates code: names are looked up in tables, sizes are limited.

Start with `save_load`: `save`, `load`, and the format of a file. `saved_ops` lists the ops that a file
may contain, `saved_values` writes their fields, `saved_leaves` symbols, dimensions and numbers, `expressions`
formulas; `heads` finds functions by name, `saved_limits` limits the size of a file.
"""
