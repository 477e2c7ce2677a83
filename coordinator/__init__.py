"""The analyst's side: the command line, the runner of joint jobs, simulation, and checks of a federation."""
