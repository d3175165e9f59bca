"""What `symad.functions` offers, one family a file.

Scalar functions, matrix functions, loops, attention, sums over pairs, random numbers, users' own.
"""
