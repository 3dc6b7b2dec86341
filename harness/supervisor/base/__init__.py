"""What every room of the supervisor may use: settings, errors, threads, ids."""
