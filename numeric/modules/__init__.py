"""The frame of generated code: names, the module's text, checks of sizes and arguments.

`names` makes identifiers, `module_text` the frame of a module, `size_checks` and `bad_arguments` the checks
of arguments and their messages. `symad.numeric.entry_point` prints the function that users call.
"""
