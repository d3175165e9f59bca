"""Loops over time as single kernels: products with constant matrices, and elementwise steps between them."""
