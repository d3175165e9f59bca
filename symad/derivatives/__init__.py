"""Transformations of graphs: `forward` and `reverse` are the two modes, the rest is made of them."""
