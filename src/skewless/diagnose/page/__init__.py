"""Pages to look at: self-contained HTML, with pictures as inline SVG, and everything escaped."""
