"""The report on a store as one HTML page, and the changes of a site that it lists."""
