"""Prints the README's first Python example, so that it can be run as it stands."""

from pathlib import Path

text = (Path(__file__).parent.parent / "README.md").read_text()
print(text.split("```python\n", 1)[1].split("```", 1)[0])
