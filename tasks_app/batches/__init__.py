"""Batches as rows: which are due, which items are next, at work and over, and the results in the tasks of batches.

rows.py reads and writes the rows, and results.py makes the events of the task of a batch. The keeper, which drives
batches, is in tasks_app/operations/batch_keeper.py.
"""
