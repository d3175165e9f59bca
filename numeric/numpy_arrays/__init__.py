"""Array graphs as NumPy code.

Start at `lower`; `printer` walks the graph, `liveness` says when a value is read last, `in_place_printer` and
`memory_reuse` decide where results go; `ops` holds one rule for each op.
"""
