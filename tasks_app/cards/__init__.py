"""The cards of this server, and the addresses at which it is reached."""
