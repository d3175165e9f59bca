"""Program passes that decide which computations share a printed line.

`inlining` is the start for arrays, `short_lines` for straight-line code of scalars. `by_twos` and `wide`
split statements; `repeats` computes cheap values again where they are read; `aliases` removes copies;
`levels` orders statements for compilers.
"""
