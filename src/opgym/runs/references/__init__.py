"""What suites are measured against: reference lines, best-known values, screening."""
