"""The environments that come with the package: each a plain Python module and its scenarios."""
