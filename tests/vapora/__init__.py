"""VAPORA in four suites: domain errors, their conversion, our client against a server, and the specification."""
