"""Relays: agents of this server that are backed by agents elsewhere, which any version of A2A reaches.

A task of a relay has one remote task. Its row (models/relays.py) says which, and how far its events are in our log, so
that another attempt follows the same remote task instead of sending the message again. The modules, from the outside:
`options` are the relays of the settings; `registration` makes an agent of each; `passage` follows one message;
`translation` translates between the two tasks; `remotes` has the clients, and `relayed_tasks` the rows; `cancellation`
cancels remote tasks, and `nudges` wakes relays that poll. The client is loaded when the first message comes.
"""

from tasks_app.relays.registration import register as register
