"""JSON that comine writes, as models from which its published schemas are made."""
