"""Reading the work before it is taken: comments, and what was seen."""
