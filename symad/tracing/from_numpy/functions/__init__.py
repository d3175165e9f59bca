"""NumPy's array functions on traced values, one family a file; each answer says what it implements."""
