"""Joint mining whose supports are noisy before anybody sees them: every party adds a share of the noise."""
