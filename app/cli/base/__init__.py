"""What every verb uses: context, output, exit codes, arguments."""
