"""How each family of ops is written as NumPy: rules of the printer, one family a file."""
