"""A software team's project tracker: issues, sprints, assignees, dependencies and a status workflow."""
