"""Graph passes that cut work into blocks that stay in the cache: rows, batches, causal triangles.

`row_blocks` is the start: an array that nobody needs whole is made some rows at a time. `batches` does the
same for whole models, `causal_blocks` for triangles, `blocked_chains` for products that follow each other;
`aligned_axes` finds the axis.
"""
