"""Files: the bytes of large parts, in a Django storage (by default a folder), apart from the rows that refer to them.

The bytes are stored first. The file's row is written later, in the transaction of the event that refers to it. Bytes
without a row after a day belong to a transaction that was never committed, and are deleted.
"""

from tasks_app.files.deleting import sweep
from tasks_app.files.links import find_problem, link_to, with_links
from tasks_app.files.storage import FindFile, outage, path_of, run_files, storage
from tasks_app.files.storing import StoredParts, TooLarge, deletion_of, has_large, store_action, storing_of

__all__ = [
    "FindFile",
    "StoredParts",
    "TooLarge",
    "deletion_of",
    "find_problem",
    "has_large",
    "link_to",
    "outage",
    "path_of",
    "run_files",
    "storage",
    "store_action",
    "storing_of",
    "sweep",
    "with_links",
]
