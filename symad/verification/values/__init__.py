"""Values of graphs: at points in balls and in fifty digits, on intervals; and where to look.

`point_set` is the start: the points of a claim, of the kinds that `strata` lists, and those beside what turns
(`turning_points`). `balls` are the strict values, and `regions` the sides of jumps and kinks by them;
`fifty_digits` gives numbers; `find_values` takes whichever answers; `domains` says what lacks values where,
`intervals` and `ranges` bound values on regions, `constant_exponents` answers single questions.
"""
