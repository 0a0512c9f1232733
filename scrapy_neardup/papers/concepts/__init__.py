"""The algorithms DWDCS and DWSWN, with key concepts and small worlds."""
