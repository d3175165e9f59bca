"""Which entries of a derivative may differ from zero: detection, rules of the ops, patterns from users."""
