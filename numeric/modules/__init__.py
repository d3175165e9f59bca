"""What surrounds generated code: names, the module's text, its entry point, checks of sizes, packing.

`entry_point` is the start: the function that a person calls, with structures of arguments. `names` makes
identifiers, `module_text` the frame of a module, `packing` one vector of all inputs, `bad_arguments` the
messages.
"""
