"""Workflows: their phases, the tasks of each phase with their results, and executions from phase to phase.

log.py is the only writer, apart from the leases on executions, which leases.py takes and releases. reading.py reads
documents. The operations are in operations/workflows.py, and operations/conductor.py begins the tasks of executions.
"""
