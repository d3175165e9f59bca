"""What is known of a node at every point: its sign, where it may be 0, where it jumps, where it is defined.

`signs` is the start: which nodes are positive or negative everywhere. `vanishing` knows which nodes may be 0
on an open set; `discontinuities` which values jump; `positive_domains` what must be positive wherever a claim
says something.
"""
