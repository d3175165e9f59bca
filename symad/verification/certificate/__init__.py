"""Certificates: what they hold, how they read, how they are stored.

`certificate` is the start: statuses, entries, what is trusted, and the certificate of many. `witness` and
`blame` say where two things differ; `report` writes text, Markdown and HTML, `storage` JSON.
`symad.verification.recheck` establishes a certificate again.
"""
