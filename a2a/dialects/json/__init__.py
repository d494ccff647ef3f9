"""The JSON forms of the data model that several dialects share, both ways."""
