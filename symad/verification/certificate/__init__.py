"""Certificates: what they hold, how they read, how they are stored."""
