"""SymPy expressions as nodes: scalars, matrices, arrays, indexed sums."""
