"""The appointment desk of a clinic."""
