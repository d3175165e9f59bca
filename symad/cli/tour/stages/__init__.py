"""The stages of ``symad tour``, one file a topic; `symad.cli.tour.stage` tells how to add one."""
