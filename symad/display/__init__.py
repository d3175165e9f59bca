"""Graphs shown to people: tables of every step, and pictures."""
