"""Array graphs as NumPy code.

Start at `lower`; `printer` makes a program of the nodes and writes its statements, whose places two program
passes decide; `memory_reuse` keeps memory between calls; `ops` holds one rule for each op.
"""
