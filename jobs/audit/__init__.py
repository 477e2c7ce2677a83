"""The audit log of a party: what happened at its node, one signed and chained line after another, and its checks.

What a node calls, in the order of a job's life; every entry is on disk when the call returns, so the thing itself may
leave the node only then:

    log = AuditLog.open(state_dir / "audit.log", identity)                # jobs.audit.log; the CLI opens the same file
    key = AuditKey.open(state_dir / "audit.key")                          # jobs.audit.key
    await log.record(NodeStarted.now(software))                           # jobs.audit.events; log.append(...) blocks
    await log.record(PlanAsked(coordinator=..., spec_digest=...))         # before Estimate answers
    await log.record(Proposed.of(signed, job_id, coordinator),            # several events: one write, one fsync
                     Approved.of(signed_approval, job_id, by="policy"))   # or Refused(...): before Propose answers
    log.append(Approved.of(...)) / log.append(Refused(...))               # party approve | deny, before it takes effect
    await log.record(Started.of(job_id, attempt, approvals))              # before the job begins
    run = await run_party(..., recorder=SessionRecorder(log, key, job_id, attempt, parties))   # jobs.audit.recorder:
                                                # session-began, then opened and transcript, also where the job fails
    await log.record(Released.of(header, to="coordinator", key=key))      # before the release may be fetched
    await log.record(Ended(job=job_id, state="succeeded"))                # or Ended.by(job_id, state, error)
    await log.record(NodeStopped())
"""
