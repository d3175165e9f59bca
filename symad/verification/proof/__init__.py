"""Exact normal forms: rational functions over independent generators, and index notation for all sizes."""
