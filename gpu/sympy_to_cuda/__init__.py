"""SymPy expressions as CUDA C: `printer` walks an expression, `writers` holds one rule for each function."""
