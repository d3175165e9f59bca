"""The stages of ``symad tour``, one file a topic; `symad.cli.stage` tells how to add one."""
