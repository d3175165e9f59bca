"""Array graphs written out as scalar graphs: arrays whose sizes are numbers, entry by entry.

`in_scalars` evaluates a graph on arrays of nodes, by the rules of ops in `rules` and `elimination`. `c_file`
and backend "c" print the resulting scalar graph.
"""
