"""SymPy expressions as CUDA C.

`printer` is the start: it traverses an expression and gives shared parts names. `writers` has the text of
each kind of SymPy node from the texts of its operands; `operands` their types, precedence and signs. Scores
and pair functions are printed in this way.
"""
