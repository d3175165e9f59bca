"""Colorings of patterns: columns, rows, star, acyclic, bidirectional, with lower bounds and validators.

`color` is the start: one function for each kind. `result` is what a coloring is for; `columns`, `star`,
`acyclic` and `bidirectional` are the algorithms, `orders` and `tabu` make them better, `lower_bounds` says
how good they are, and `oracles` are the literal definitions that they are tested against.
"""
