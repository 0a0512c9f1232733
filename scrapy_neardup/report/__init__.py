"""The report on a store as one HTML page: `data` collects the data, `page` writes the page.

The page needs no network. It contains the data as JSON, which the scripts in this folder draw in the browser.
"""
