"""Sparse derivatives from few products: seeds, compression, and recovery of the entries.

`jacobian_hessian` is the start: graphs whose value is a csr_array. `compression` is seeds and recovery in
NumPy, `colored_products` the same as graphs, `seedless` and `stencil_terms` entries without seeds,
`substitution` acyclic colorings.
"""
