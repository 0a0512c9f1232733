"""The self-organising map: clusters of a whole batch of documents by weighted terms."""
