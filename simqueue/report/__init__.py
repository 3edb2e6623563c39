"""Reports for readers: the comparison on a terminal, and documents as HTML pages or Markdown."""
