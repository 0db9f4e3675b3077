"""A company's travel desk: trips, flights, hotels, budgets, approvals, changes and cancellations."""
