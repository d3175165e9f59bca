"""Programs: a lowered graph as typed, immutable statements, before any text is printed.

Start with `expressions`, `statements` and `program`. `checking` validates a program, and `interpreter` runs
it in NumPy; with these two, the tests check each pass on programs separately. `uses` counts the reads of
values and finds their lifetimes.
"""
