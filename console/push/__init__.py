"""Notifications in the browsers of a console's people, by Web Push: who has subscribed, and what carries them there."""
