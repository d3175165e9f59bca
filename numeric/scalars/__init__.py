"""Graphs of scalars as code: straight-line Python, C, and NumPy on levels of equal functions ("runs").

Start at `lower_python`, `lower_c` or `lower_runs`; `lanes` holds many points side by side.
"""
