"""Program passes that decide which computations share a printed line.

`inlining` is the start for arrays, `scalar_lines` for straight-line code of scalars. `by_twos` splits
statements and computes cheap values again where they are read.
"""
