"""Graphs of scalars as Python: straight-line code, and NumPy on levels of equal functions ("runs").

`lower_python` is the start. `level_runs` sorts operations into levels, which `numpy_runs` prints.
"""
