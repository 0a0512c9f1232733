"""The store on a server that speaks Redis' protocol, for the workers of several machines."""
