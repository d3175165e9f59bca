"""Programs: a lowered graph as typed, immutable statements, before any text.

Start with `expressions` (what is computed), `statements` (what is done in which order) and `program` (the
whole). `checking` says whether a program is well formed, `interpreter` runs it in NumPy: with the two every
pass on programs is tested alone. `uses` is the one answer to who reads what.
"""
