"""The wire languages of the client, a module for each."""
