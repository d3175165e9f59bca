"""Array graphs on the CPU with compiled kernels: NumPy ufuncs made from generated C.

Start at `lower`; `choose_kernels` decides what is compiled, `c` writes the text, `ufuncs` loads it.
"""
