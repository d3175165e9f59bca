"""Evaluation of graphs on any kind of number of `symad.numbers`.

`evaluate` is the entry point: the call of a graph. `dual_functions` defines SymPy's functions of dual
numbers, `node_numbers` takes scalar nodes as numbers, `rational_results` gives exact results for exact
arguments.
"""
