"""Colorings of patterns: columns, rows, star, acyclic, bidirectional, with lower bounds and validators.

Start with `color`, and one function for each kind. `coloring` holds a coloring, with compression and
recovery (`substitution` for acyclic colorings). `conditions` says what a kind requires. `search` tries
candidates, which are made by first-fit (`greedy`) in several `orders`, by `closed_forms`, by `bidirectional`
peeling and by `tabu` search; `lower_bounds` bound the number of colors from below.
"""
