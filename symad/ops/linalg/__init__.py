"""Ops of linear algebra: systems, factorizations, eigenvalues.

Start with `solve_det`: A⁻¹b, determinants, inverses. `cholesky`, `eigen`, `matrix_power` and `slogdet` have
the ops of their names.
"""
