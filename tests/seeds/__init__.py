"""The systems that Taskdesk serves: their requirements, and clients that are written from their documents alone."""
