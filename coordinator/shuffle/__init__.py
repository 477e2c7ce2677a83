"""Reports through shufflers: routes, senders and collectors."""
