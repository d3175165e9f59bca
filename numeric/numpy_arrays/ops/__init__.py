"""The printer's rules for NumPy, one file for each family of ops."""
