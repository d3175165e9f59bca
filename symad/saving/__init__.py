"""Graphs as files. Loading never evaluates code: names are looked up in tables, sizes are limited."""
