"""The Slack front: a question from Slack is stored before it is acknowledged, and then answered in its thread.

`bolt` reads what Slack sends, `arrivals` stores it, `responder` takes the questions that are due, `answering` has one
answered, and `messages` writes the reply into its thread. The rows are the queue: any process may go on with a question
whose process has died.
"""
