"""The C text of the kernels: chains, rows, softmax, gathers, loops, products.

Start with `chain_text`: an elementwise chain as the inner loop of a ufunc. `row_text` and `softmax_text`
are loops over rows, `loop_text` is a recurrence as a whole, and `c_body` writes the statements inside of
them.
"""
