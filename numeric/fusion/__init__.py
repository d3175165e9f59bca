"""Fusion: passes that combine many nodes into one kernel, for compiled C and for CUDA.

`chains` turns elementwise nodes into one kernel. `rows` and `row_statements` add reductions over rows,
`products` turns contractions without a sum into products, and `c_expressions` writes the bodies.
"""
