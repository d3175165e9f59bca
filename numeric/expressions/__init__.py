"""Rules that rewrite the expression of one statement: constants, small powers, views as indices.

`folding` is the start: 3*(2*x) becomes 6*x, and x² x*x. `views` makes slices and reshapes indices, and
joins a view of a view.
"""
