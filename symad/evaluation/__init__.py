"""Evaluation of graphs on any kind of number of `symad.numbers`.

`evaluate` is the entry point: the call of a graph. `dual_functions` defines SymPy's functions of dual
numbers, `node_numbers` takes scalar nodes as numbers, `rational_results` gives exact results for exact
arguments. `intervals` is interval arithmetic, `value_ranges` bounds the elements of arrays of any size;
`decided` leaves out branches that bounds decide.
"""
