"""Deleting what is past its time: as fast as it is made, in small steps, beside those who write."""

from tasks_app.retention.keeping import Keeper, keeper
from tasks_app.retention.kinds import HEAPS, Heap
from tasks_app.retention.purge import count, purge

__all__ = ["HEAPS", "Heap", "Keeper", "count", "keeper", "purge"]
