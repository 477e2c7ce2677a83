"""A node as a shuffler: takes sealed reports, and hands them on in batches whose order it alone once knew."""
