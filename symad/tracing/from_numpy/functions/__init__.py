"""NumPy's array functions on traced values, one family in each file.

`reductions`, `shapes` and `products` are the largest families. To add a function, register an implementation
by `@implements(np.name)` (see `symad.tracing.from_numpy.registry`) in the file of its family: its parameters
are the options that it supports, and all others are refused by name.
"""
