"""A smart home: devices in rooms, scenes, schedules and safety rules."""
