#!/usr/bin/env python
"""Django's commands, and ours: run, serve, worker, tasks, exchanges, deliveries, a2a."""

import signal


def start() -> None:
    """Run the command that the arguments name. An interrupt before that ends the process without a traceback."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:  # A process in the background of a script ignores interrupts.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from config.manage import main

    signal.signal(signal.SIGINT, interrupt)
    main()


if __name__ == "__main__":
    start()
