"""The report as one HTML page that needs nothing else: what is shown of it, and its template."""
