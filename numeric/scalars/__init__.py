"""Graphs of scalars as code: straight-line Python, C, and NumPy on levels of equal functions ("runs").

The backends are `lower_python`, `lower_c` and `lower_runs`, each the start of its own. `level_runs` and
`numpy_runs` sort operations into levels, which `c_interpreter` runs in one compiled function; `lanes` and
`compiled_batches` compute many points side by side; `flat_results` and `python_binding` pass results to
Python.
"""
