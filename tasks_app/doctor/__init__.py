"""Examines a live system and says what is wrong with it: logs against rows, work without a way forward, processes.

It only reads, in short snapshots, so that it may be run at any time. What it finds is for an operator to mend.
"""

from tasks_app.doctor.examination import Examination, examine
from tasks_app.doctor.finding import Finding

__all__ = ["Examination", "Finding", "examine"]
