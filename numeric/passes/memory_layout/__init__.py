"""Graph passes that choose the layout of arrays in memory: pads, spans, stencils.

`packed_entries` handles arrays of scalars, `pads` sums of padded arrays, of slices
and of broadcast arrays, and `memory_spans` work on slices.
"""
