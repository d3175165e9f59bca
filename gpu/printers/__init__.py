"""Printers for CuPy: what differs from NumPy, and the text of generated kernels."""
