"""Transformations of nodes, used by the public derivatives and by ops that contain graphs.

`tangents` is forward mode, `cotangents` reverse mode, `batches` a leading axis; `jacobians` makes gradients
and Jacobians of them, `branch_masks` keeps untaken branches out of derivatives.
"""
