"""The graphs room."""
