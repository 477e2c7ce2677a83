"""What goes over the wire, frozen for each wire version."""
