"""Training: the loop that takes any learner, run directories, reporters, several seeds at once."""
