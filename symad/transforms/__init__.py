"""Transformations of nodes, used by the public derivatives and by ops that contain graphs.

`tangents` is forward mode, `cotangents` reverse mode, `batches` a leading axis; `seeding` makes Jacobians of
them, `branch_masks` keeps untaken branches out of derivatives, `values` evaluates.
"""
