"""Workflows: their phases, the tasks of each phase with their results, and executions from phase to phase.

log.py is the only writer, reading.py reads documents. The operations are in operations/workflows.py, and
operations/conductor.py begins the tasks of executions.
"""
