"""Operators, the people who run the service: their logins, the record of their acts, and the search for rows."""
