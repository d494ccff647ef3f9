"""The bytes of large parts: kept in a Django storage, a folder by default, apart from the rows that refer to them.

A file is stored first; its row comes with the event that shows it, in the same transaction. What has no row after a
day belongs to a transaction that never was, and is deleted.
"""

from tasks_app.files.forgetting import sweep
from tasks_app.files.links import link_to, problem_of, with_links
from tasks_app.files.storage import FindFile, path_of, run_files, storage
from tasks_app.files.storing import Kept, TooLarge, any_large, dropping, keeping, kept

__all__ = [
    "FindFile",
    "Kept",
    "TooLarge",
    "any_large",
    "dropping",
    "keeping",
    "kept",
    "link_to",
    "path_of",
    "problem_of",
    "run_files",
    "storage",
    "sweep",
    "with_links",
]
