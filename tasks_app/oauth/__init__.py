"""Our own OAuth 2.0 server: clients, tokens and metadata, on django-oauth-toolkit. It is there if A2A_OAUTH is on.

Only clients.py, metadata.py, resources.py and scopes.py may be imported without that package.
"""
