"""SymPy expressions as CUDA C: `printer` traverses an expression, `writers` has a rule for each function."""
