"""Vectorised elementary functions in C, with the tables of their polynomials."""
