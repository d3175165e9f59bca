"""Ops of linear algebra: systems, factorisations, eigenvalues, roots of equations."""
