"""The C text of the kernels: loop nests, gathers, loops over time, products.

Start with `nest_text`: the loops of a nest as the inner loop of a ufunc. `drivers` calls them for arrays of
any layout, `loop_text` is a recurrence as a whole, and `c_body` writes the statements inside of them.
"""
