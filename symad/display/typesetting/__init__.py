"""Formulas as LaTeX that can be published: products collected, signs in front, matrices as matrices."""
