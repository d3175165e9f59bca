"""Colorings of patterns: columns, rows, star, acyclic, bidirectional, with lower bounds and validators."""
