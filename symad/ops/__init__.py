"""The ops, one family a file, with all their mathematical answers."""
