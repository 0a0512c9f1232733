"""The self-organising map, which clusters a whole batch of documents by weighted terms."""
