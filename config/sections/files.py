"""Files."""

from config.environment import members, number, text, whole
from config.sections.process import DATA_DIR

A2A_INLINE_BYTES = whole("A2A_INLINE_BYTES", 16_384)
"""The largest size of a part inside rows and answers. Larger parts are stored as files, and answers have links to
them."""
A2A_FILE_BYTES = whole("A2A_FILE_BYTES", 25_000_000, 1)
"""Bytes of one file. `A2A_BODY_BYTES` limits a call with all its parts, also where it is smaller."""
A2A_TASK_FILE_BYTES = whole("A2A_TASK_FILE_BYTES", 100_000_000, 1)
"""Bytes of all files of a task."""
A2A_FILE_URL_SECONDS = number("A2A_FILE_URL_SECONDS", 3600, 2, 31_536_000)
"""The longest time that a link to a file is valid. It is valid for half of it at least."""
A2A_DOWNLOADS = whole("A2A_DOWNLOADS", 100, 1)
"""Downloads of files in a process at the same time. Each has its file open, besides its connection, for as long as its
client reads. Further ones get 503 with `Retry-After`. One address has half of them at most; a further one of it gets
429. It leaves half of what others have not taken to further addresses."""
A2A_FILE_STORAGE = text("A2A_FILE_STORAGE", "django.core.files.storage.FileSystemStorage")
"""The dotted path of a Django storage. By default it is the folder `files` in `DATA_DIR`. Several processes need a
storage that all of them reach, and that stores a file under exactly the name it gets."""
A2A_FILE_STORAGE_OPTIONS = members("A2A_FILE_STORAGE_OPTIONS")
"""Options of that storage."""
_FOLDER = {"location": str(DATA_DIR / "files"), "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "files": {
        "BACKEND": A2A_FILE_STORAGE,
        "OPTIONS": (_FOLDER if A2A_FILE_STORAGE.endswith(".FileSystemStorage") else {}) | A2A_FILE_STORAGE_OPTIONS,
    },
}
