"""Targets: how programs are written as text, one pure function of (op, target) at a time.

Start with `target` (what a target is: its names and literals) and `scalars` (the one printer of elementwise
expressions, for all targets). `arrays`, `linear_algebra` and `statements` add what NumPy has beyond;
`module` joins a whole file. Text is only ever joined here, never read.
"""
