"""Loops over time as single kernels: products with constant matrices, and elementwise steps between them.

`symad.gpu.passes.recurrences` has the op of such a loop, and makes it. `step` writes single elements
as scalars and orders the parts of one step, and `kernel_text` is the CUDA text of the whole loop.
"""
