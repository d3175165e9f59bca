"""Sparse derivatives from few products: seeds, compression, and recovery of the entries.

Start with `jacobian_hessian`: graphs whose value is a csr_array. `compression` has seeds and recovery in
NumPy, `colored_products` the same as graphs, `seedless` and `stencil_terms` entries without seeds,
`substitution` acyclic colorings.
"""
