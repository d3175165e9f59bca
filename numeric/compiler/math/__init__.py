"""Vectorized elementary functions in C, with the tables of their polynomials.

`vector_math` has the functions, for both precisions, as templates of C without branches, which compilers
turn into vector code; it has the coefficients and says how they were found.
"""
