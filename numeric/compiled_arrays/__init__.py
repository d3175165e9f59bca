"""Array graphs on the CPU with compiled kernels: NumPy ufuncs made from generated C.

`lower` is the entry point; `choose_kernels` decides what is compiled, `kernels` writes the calls, `c` the
text in C, and `ufuncs` loads it.
"""
