"""The functions of `symad.functions`, one family in each file.

`scalar_functions` is the start. `special_functions`, `probability`, `ranged` and `elliptic_*` have further
functions of numbers, `matrix_functions`, `decompositions` and `triangular` those of matrices, `scan` and
`associative_scan` loops, `attention`, `score_functions` and `pairwise` sums over pairs, `random` numbers from
keys, `user_functions` users' own.
"""
