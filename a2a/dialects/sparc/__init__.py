"""SPARC: A2A 0.2.9 with a framing of its own, and with methods for workflows, batches and memory."""
