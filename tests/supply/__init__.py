"""The supply chain: the bill of materials of the locks, and the known vulnerabilities of their packages."""
