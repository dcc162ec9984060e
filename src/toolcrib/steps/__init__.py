"""What happens to a call between the door and its source: one file a step, placed in order by `build`."""
