#!/usr/bin/env python
"""Django's commands, and ours: run, serve, worker, tasks, exchanges, deliveries, a2a."""

from config.manage import main

if __name__ == "__main__":
    main()
