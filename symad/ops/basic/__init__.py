"""The ops in which the rules of all others are written.

Start with `sources`: inputs and constants. `arithmetic` is sums, products and quotients of elements,
`shaping` reshapes, slices, pads and repeats, `contraction` is einsum, the only product between arrays.
"""
