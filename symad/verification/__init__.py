"""Certificates: what is known about a derivative, and how well."""
