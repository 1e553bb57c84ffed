"""The command line, ``eva-hw``: one file per command."""
