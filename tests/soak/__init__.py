"""The soak: a day of use in compressed time, after which a process holds what it held before."""
