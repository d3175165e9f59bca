"""Ops of linear algebra: systems, factorisations, eigenvalues, roots of equations.

`solve_det` is the start: A⁻¹b, determinants, inverses. `cholesky`, `eigen`, `matrix_power`, `slogdet` and
`adjugate` follow by name; `root` is the solution of equations, differentiated by the implicit function
theorem.
"""
