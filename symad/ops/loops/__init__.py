"""Ops with a body: recurrences, checkpointed chains, recomputation.

`scan` is the start: all states of a recurrence, whose derivatives are scans. `checkpointed_chain` is the
last state with few states kept, `affine_scan` the linear recurrence that runs in parallel, `remat` values
that reverse mode computes again, `captured` values of functions around the one that is traced.
"""
