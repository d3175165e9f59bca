"""Graphs evaluated: on floats, Fractions, mpmath numbers, SymPy expressions and dual numbers.

`evaluate` is the start: a graph called. `number_domains` says what each kind of number does, `numpy_names`
which function of NumPy or SciPy a function of SymPy is, `exact_linalg` linear algebra on objects, `dual`
and `dual_domain` forward mode by operator overloading, `node_numbers` scalar nodes as numbers.
"""
