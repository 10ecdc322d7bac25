"""From what a comparison found to what people read: pages, Markdown, JSON and pictures."""
