"""The stages of ``symad tour``, one file for each topic; `symad.cli.tour.stage` explains how to add one."""
