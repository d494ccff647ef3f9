"""Any calls: valid ones by their schemas, nearly valid ones, and any bytes.

Each gets a valid answer, or none if it is a notification. None gets an internal error, a traceback, or a wait without
an end.
"""
