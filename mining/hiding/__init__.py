"""Association-rule hiding: transactions changed a little, so that sensitive rules can no longer be mined from them."""
