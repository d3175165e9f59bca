"""Nodes as SymPy expressions."""
