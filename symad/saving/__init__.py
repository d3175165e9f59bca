"""Graphs as files. Loading never evaluates code: names are looked up in tables, sizes are limited.

`save_load` is the start: `save`, `load`, and what a file looks like. `saved_ops` lists the ops that a file
may hold, `saved_values` writes their fields, `saved_leaves` symbols, dimensions and numbers, `expressions`
formulas; `heads` finds functions by name, `saved_limits` says how large a file may be.
"""
