"""Transformations of nodes, on which the public derivatives and the ops with bodies stand.

`tangents` is forward mode, `cotangents` reverse mode, `batches` a leading axis; `seeding` makes Jacobians of
them, `branch_masks` keeps branches that are not taken from spoiling derivatives, `values` evaluates.
"""
