"""The doors of callers. A call becomes a neutral Call (call.py), which handling.py has read, performed and recorded."""
