"""SymPy expressions as CUDA C.

`printer` traverses an expression and gives shared parts names; `writers` has the text of each kind of SymPy
node from the texts of its operands. Scores and pair functions are printed in this way.
"""
