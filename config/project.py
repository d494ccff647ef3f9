"""The folders of the project."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The folder of the clone."""
PROJECT = ROOT if (ROOT / "manage.py").exists() else Path.cwd()
"""The folder of the clone; for an installed package, the folder where its command is called."""
