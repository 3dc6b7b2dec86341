"""The append-only log as a file format: framing, writer, recovery, reader, index, blobs."""
