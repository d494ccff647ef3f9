"""The database in groups: work items and lanes, prepared statements, rows and tables, sessions."""
