"""The audit: counts of refused calls, deletion by age, and the export of all that is stored of who did what."""
