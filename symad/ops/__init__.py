"""The ops, one family in each file, with all their mathematical answers.

`basic` has the ops in which the rules of all others are written; `elementwise`, `arrays`, `linalg` and
`sparse` stand on it. Ops whose rules transform graphs are in `symad.higher_order`, attention and sums over
pairs in `symad.fused`, roots of equations in `symad.derivatives.implicit`. `symad.core.questions` declares
the questions.
"""
