"""Ops on sparse matrices.

Start with `csr`: an op whose value is a scipy ``csr_array`` on a fixed pattern, with entries from other
nodes. `sparse_solve` solves linear systems with such a matrix by SuperLU, and has its derivatives.
"""
