"""Minimization, least squares and Newton's method with symad's derivatives.

Start with `minimize`; its steps are in `newton` and `newton_directions`. `least_squares` is for residuals,
and `inversion` samples by inverting distribution functions. `solver_variables` turns the unknowns of a
graph into one flat vector.
"""
