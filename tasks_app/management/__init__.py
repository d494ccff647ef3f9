"""The command line: the commands of manage.py, their arguments, and the generator of docs/reference."""
