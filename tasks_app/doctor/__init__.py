"""The doctor: finds what is wrong with a live system in event logs, stuck work, and processes.

It only reads, in short snapshots, so it may run at any time. Each finding tells an operator what to do.
"""

from tasks_app.doctor.examination import Examination, examine
from tasks_app.doctor.finding import Finding

__all__ = ["Examination", "Finding", "examine"]
