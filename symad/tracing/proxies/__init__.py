"""Traced values: objects with NumPy's protocols that build a graph instead of computing.

Start with `proxy`: an array that is traced. `wrapped` converts between values and nodes, `arithmetic` has
the operators, `array_protocol` what Python and NumPy ask of arrays; `sessions` knows what is being traced,
`frames` the names in the user's code.
"""
