"""NumPy and SciPy functions on traced values, one family a file.

`registry` finds them, `options` refuses what is not read.
"""
