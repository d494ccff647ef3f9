"""Support of tests: people, agents, doors, servers and databases that tests of several rooms use."""
