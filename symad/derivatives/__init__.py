"""Transformations of graphs: `forward` and `reverse` are the two modes; all others are compositions of them.

`jacobian` has gradients and Jacobians, `hessian` the four modes and products with vectors, `vmap` batches,
`jet` series, `implicit` derivatives of solutions (by the op in `root`), `remat` and `memory_plans`
recomputation. The rules of the ops are in the files of the ops; the loops over nodes in `symad.transforms`.
"""
