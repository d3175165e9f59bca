"""Values of graphs: at points with fifty digits, in balls, on intervals; and where to look.

`points` is the start: the points of a search, with `hostile_points` and `turning_points`. `fifty_digits` and
`balls` give exact values, `find_values` takes whichever answers, in the ways of `evaluation`; `domains` says
what lacks values where, `intervals` and `ranges` bound values on regions, `constant_exponents` answers single
questions.
"""
