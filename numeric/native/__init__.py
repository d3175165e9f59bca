"""Array graphs on the CPU with compiled kernels: NumPy ufuncs made from generated C."""
