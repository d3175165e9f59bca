"""Graph passes that choose the layout of arrays in memory: pads, spans, blocks of matrices, stencils.

`packed_entries` handles arrays of scalars and `joined_pads` adjacent parts. The others are named after what
they handle: `block_matrices`, `overlapping_pads`, `flat_stencils`, `memory_spans` and `sparse_results`.
"""
