"""Commands of the services of nodes beside joint jobs: frequency estimation, shuffling and audited queries."""
