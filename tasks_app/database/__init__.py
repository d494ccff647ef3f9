"""The database in groups: work items and lanes, prepared statements, rows, sessions."""
