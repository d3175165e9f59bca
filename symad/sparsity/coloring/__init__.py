"""Colorings of patterns: columns, rows, star, acyclic, bidirectional, with lower bounds and validators.

Start with `color`, and one function for each kind. `result` holds a coloring, with `compression` and
recovery (`substitution` for acyclic colorings); `columns`, `star`, `acyclic` and `bidirectional` are the
algorithms, `orders` improves them, and `lower_bounds` bound the number of colors from below.
"""
