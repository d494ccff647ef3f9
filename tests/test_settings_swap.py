"""Settings that a test replaces while other threads read them."""

import sys
from threading import Event, Thread

from django.conf import settings
from django.test import override_settings

SWAPS = 2_000


def test_a_thread_reads_settings_while_a_test_replaces_them() -> None:
    ended, values, failures = Event(), set[float](), list[Exception]()

    def read() -> None:
        while not ended.is_set():
            try:
                values.add(settings.A2A_SWEEP_SECONDS)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
                failures.append(error)
                return

    usual = settings.A2A_SWEEP_SECONDS
    thread = Thread(target=read)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns at every step
    thread.start()
    try:
        for _ in range(SWAPS):
            with override_settings(A2A_SWEEP_SECONDS=usual + 1):
                assert usual + 1 == settings.A2A_SWEEP_SECONDS
            assert usual == settings.A2A_SWEEP_SECONDS
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not failures
    assert values == {usual, usual + 1}
