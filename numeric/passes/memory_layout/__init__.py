"""Graph passes that choose the layout of arrays in memory: pads, spans, stencils.

`packed_entries` handles arrays of scalars and `joined_pads` adjacent parts; `cancel_pads` drops zeros that
are cut off again. The others are named after what they handle: `overlapping_pads` and `memory_spans`.
"""
