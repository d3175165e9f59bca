"""Graphs of scalars as compiled code: C for one point, and levels of equal functions for many ("runs").

The backends are `lower_c` and `lower_runs`, each the start of its own. `c_interpreter` runs levels in one
compiled function; `lanes` computes many points side by side; `quick_calls` passes
arguments and results between Python and C.
"""
