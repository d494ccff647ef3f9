"""The chapters of the story: free of languages and doors, each told to a cast. Speakers know the differences."""

from tests.support.chapters import batches, errors, extensions, files, sending, streams, tasks, webhooks
from tests.support.story import CHAPTERS

__all__ = ["CHAPTERS", "batches", "errors", "extensions", "files", "sending", "streams", "tasks", "webhooks"]
