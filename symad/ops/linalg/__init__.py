"""Ops of linear algebra: systems, factorisations, eigenvalues, roots of equations.

Start with `solve_det`: A⁻¹b, determinants, inverses. `cholesky`, `eigen`, `matrix_power`, `slogdet` and
`adjugate` have the ops of their names; `root` is the solution of equations, differentiated by the implicit
function theorem.
"""
