"""Taking the work: results made beside everything, and moving a branch to them."""
