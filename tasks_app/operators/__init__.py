"""The people who run the service: their logins, what they do, and how they find rows."""
