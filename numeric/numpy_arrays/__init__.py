"""NumPy code for array graphs.

Start at `lower`. `plans` makes the programs of a graph and of its loops; passes on them have decided where
each value is computed. `statements`, `elementwise_statements`, `loop_statements` and `kernels` are the rules
by which an `ArrayWriter` (`writer`) writes them, `expressions` those of ops that differ from plain code.
`pairs` has attention and sums over pairs, `scalars` graphs of scalars. `module` joins the file,
`memory_reuse` keeps memory between calls.
"""
