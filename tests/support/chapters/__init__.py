"""The chapters of the story: free of languages and doors, each told to a cast. Speakers know the differences."""

from tests.support.chapters import batches, budgets, errors, extensions, files, sending, streams, tasks, webhooks
from tests.support.story import CHAPTERS

__all__ = ["CHAPTERS", "batches", "budgets", "errors", "extensions", "files", "sending", "streams", "tasks", "webhooks"]
