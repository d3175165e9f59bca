"""Formulas as LaTeX that can be published: products collected, signs in front, matrices as matrices.

`graphs` is the start: the formula of a graph. `pieces` is how parts of a formula combine, `rules` and
`contractions` say how each op is typeset, `derivation` shows a derivative step by step.
"""
