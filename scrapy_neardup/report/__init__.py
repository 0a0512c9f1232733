"""The report of a store as one HTML page: `data` collects it, `page` writes it.

The page needs no network. It contains the data as JSON, which the scripts in this folder draw in the browser.
"""
