"""The back end on a server that speaks the protocol of Redis."""
