"""Turn the results of a comparison into reports: HTML pages, Markdown, JSON and figures."""
