"""Back ends on this machine: in memory and in a file."""
