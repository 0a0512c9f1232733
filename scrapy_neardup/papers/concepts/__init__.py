"""Key concepts and small worlds: the algorithms DWDCS and DWSWN."""
