"""The frame of generated code: names, the module's text, checks of sizes and arguments.

`module_text` has the frame of a module and its names, `users_functions` calls what users implement;
`bad_arguments` looks at what a call was given. `symad.numeric.entry_point` prints the function that users
call.
"""
