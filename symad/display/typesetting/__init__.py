"""Formulas as publishable LaTeX: products collected, signs in front, matrices as matrices.

Start with `graphs`: the formula of a graph. `pieces` combines parts of formulas, `rules` and
`contractions` typeset each op, `derivation` shows a derivative step by step.
"""
