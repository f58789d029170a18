"""An oracle for commands that remove state: the rows of a snapshot before and after, and what a request asks for, in plain Python."""
