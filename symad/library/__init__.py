"""The functions of `symad.functions`, one family in each file.

Scalar functions, matrix functions, loops, attention, sums over pairs, random numbers, users' own.
"""
