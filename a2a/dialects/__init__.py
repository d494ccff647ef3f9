"""The versions of A2A as wire languages, one a file. a2a/languages.py lists them and chooses among them."""
