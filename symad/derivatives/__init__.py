"""Transformations of graphs: `forward` and `reverse` are the two modes, the rest is made of them.

`jacobian` has gradients and Jacobians, `hessian` the four modes and products with vectors, `vmap` batches,
`jet` has series, `implicit` derivatives of solutions, `remat` and `memory_plans` what is kept. `wrt`
chooses the inputs. The rules of the ops stand with the ops; the loops over nodes in `symad.transforms`.
"""
