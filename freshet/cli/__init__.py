"""The ``freshet`` command: one module a command, each with a function named ``command``."""
