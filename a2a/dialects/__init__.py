"""The wire languages: a file for each version of A2A, and a file or folder for each other system.

a2a/languages.py lists them.
"""
