"""A public library's circulation desk."""
