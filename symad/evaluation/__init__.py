"""Graphs evaluated: on floats, Fractions, mpmath numbers, SymPy expressions and dual numbers."""
