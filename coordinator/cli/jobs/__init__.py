"""Commands of joint jobs: plan, run, simulate and compare them, and look after those that ran."""
