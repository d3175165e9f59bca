"""Passes that join many nodes to one kernel, for compiled C and for CUDA.

`chains` is the start: elementwise nodes as one kernel. `rows` and `row_statements` add reductions over
rows, `products` what stands after a matrix product, `recompute` what is computed twice instead of stored;
`c_expressions` writes the bodies.
"""
