"""The C text of the kernels: chains, rows, softmax, gathers, loops, products."""
