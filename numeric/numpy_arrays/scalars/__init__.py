"""Graphs of scalars as Python: straight-line code, and NumPy on levels of equal functions ("runs").

`numpy_runs` is the start: it prints the levels into which `level_runs` sorts operations.
"""
