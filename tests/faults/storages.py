"""A storage whose process dies at the worst moment: when the bytes are there and nothing refers to them yet."""

import os
import signal
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage


class Fatal(FileSystemStorage):
    """Kills its process after a file of a folder, once, if there is a file `kill` beside the folders.

    The sweeper writes a file beside the folders as well, at any time.
    """

    def _save(self, name: str, content: Any) -> str:
        saved = super()._save(name, content)
        order = Path(self.path("kill"))
        if "/" in name and order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return str(saved)
