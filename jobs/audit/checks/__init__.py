"""What is checked of audit logs, result folders and evidence: each by itself, and against the others."""
