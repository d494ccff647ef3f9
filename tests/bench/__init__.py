"""`make bench`: Taskdesk alone and in its production shape, loaded and counted; it asserts that nothing is lost."""
