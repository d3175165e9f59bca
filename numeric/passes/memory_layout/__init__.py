"""Graph passes that choose how arrays lie in memory: pads, spans, blocks of matrices, stencils.

`packed_entries` and `joined_pads` are the simple ones: arrays of scalars, and parts side by side.
`block_matrices`, `overlapping_pads`, `flat_stencils`, `memory_spans` and `sparse_results` follow by name.
"""
