"""Loops over time as single kernels: products with constant matrices, and elementwise steps between them.

Start with `recurrence`: the op of such a loop, and the test that finds it. `step` orders the parts of one
step, `elements` writes single elements as scalars, and `kernel_text` is the CUDA text of the whole loop.
"""
