"""Fusion: passes that combine many nodes into one kernel, for compiled C and for CUDA.

`nest` is the op of such a kernel, also for a softmax. `chains` makes nests of elementwise nodes, `rows` of
reductions over rows with the nodes around them. `nest_loops` splits a nest into loops, `c_expressions` writes
their bodies.
"""
