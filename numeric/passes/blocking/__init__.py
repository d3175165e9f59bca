"""Graph passes that cut work into blocks that stay in the cache: rows, batches, causal triangles.

`row_blocks` comes first: an array that nothing needs as a whole is computed some rows at a time. `batches`
does the same for whole models, `causal_blocks` for triangles, and it finds the axes that can be cut.
"""
