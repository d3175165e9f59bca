"""Array graphs on the CPU with compiled kernels: NumPy ufuncs made from generated C.

`lower` is the entry point, and has the calls; `choose_kernels` decides what is compiled, `c` writes the
text in C, and `ufuncs` loads it.
"""
