"""Printers: how each family of ops is written in a target language."""
