"""The back end on a server with the Redis protocol."""
