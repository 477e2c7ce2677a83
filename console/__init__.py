"""The web console that nodes and coordinators share: who may enter, what a request must hold, how pages look."""
