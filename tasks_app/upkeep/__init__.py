"""What time alone brings about: leases that ended, tasks that waited for too long, rows past their time."""
