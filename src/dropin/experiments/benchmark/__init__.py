"""The open-team benchmark: tasks with strangers, changing teams and changing types."""
