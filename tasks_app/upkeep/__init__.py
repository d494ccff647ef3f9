"""Work that becomes due with time alone: expired leases, tasks that waited too long, rows past their retention time."""
