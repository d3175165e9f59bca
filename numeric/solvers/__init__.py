"""Minimisation, least squares and Newton's method with symad's derivatives."""
