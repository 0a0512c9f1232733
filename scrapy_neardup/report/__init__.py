"""The report of a store as one HTML page: `data` collects it, `page` writes it.

The page needs no network. What it shows is JSON inside it; the scripts beside this file draw that in the browser.
"""
