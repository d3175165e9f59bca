"""Graphs of arrays written out as graphs of scalars: arrays of sizes that are numbers, entry by entry.

Start at `in_scalars`: it evaluates a graph on arrays of nodes, by the rules of ops in `rules` and
`elimination`. `c_file` prints what comes out as C that stands alone.
"""
