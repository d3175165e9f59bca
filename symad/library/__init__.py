"""The functions of `symad.functions` on arrays and traced values, one family in each file.

`scan` and `associative_scan` are loops, `attention` and `pairwise` sums over pairs, `decompositions` and
`triangular` functions of matrices, `random` numbers from keys, `user_functions` users' own.
"""
