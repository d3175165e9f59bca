"""NumPy's array functions on traced values, one family a file; each answer says what it implements.

`reductions`, `shapes` and `products` are the largest families. To add a function, register an answer by
`@implements(np.name)` (see `symad.tracing.from_numpy.registry`) in the file of its family: its parameters
are the options that it reads, and all others are refused by name.
"""
