"""Graph passes of the CuPy backend: what is joined, recognised or written out before code is printed."""
