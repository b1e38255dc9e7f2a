"""The command line: commands as a table, one line and an exit code at the end."""
