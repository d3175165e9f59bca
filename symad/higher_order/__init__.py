"""Ops whose rules transform graphs: loops, recomputation, Taylor coefficients.

Start with `scan`: all states of a recurrence, whose derivatives are scans, and values of functions around
the traced function, which a step captures. `checkpointed_chain` is the last state with few states kept,
`affine_scan` the linear recurrence that runs in parallel, `remat` values that reverse mode recomputes.
`adjugate` is differentiated through its definition, `series` has the Taylor coefficients of all ops.
"""
