"""Graphs of scalars as code: straight-line Python, C, and NumPy on levels of equal functions ("runs").

The backends are `lower_python`, `lower_c` and `lower_runs`; `lanes` computes many points side by side.
"""
