"""Shared streams in the database: the log of their chunks, the only writer of their state, and reads of both.

Operations decide what is written. `answers` keeps what agents owe, and `reading` follows the log as streams of tasks
are followed.
"""
