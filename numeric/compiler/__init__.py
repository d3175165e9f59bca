"""The C compiler: finding it, calling what it made, and the private folder in which that is kept."""
