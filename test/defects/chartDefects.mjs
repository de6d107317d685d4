/** Defects of the charts and the pure functions of `machines/`, each with the test file that must detect it. */
export const charts = [
  {
    id: 'suspension-given-up',
    about: 'a cancel that gives up the append of a suspension leaves its calls waiting',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [["...(!failed.lost?.length && context.end.termination === 'Suspended' && context.end)", '']],
  },
  {
    id: 'empty-message-in-a-history',
    about: 'an empty reply in a history is sent to the model again',
    witness: 'test/paths/drawnResults.test.ts',
    edits: [['content.length > 0 &&\n  toolCalls.length === 0', 'toolCalls.length === 0']],
  },
  {
    id: 'retry-once-more',
    about: 'a tool is executed once more than the policy permits',
    witness: 'test/scenarios/toolRetry.test.ts',
    edits: [['attempt < retry.attempts', 'attempt <= retry.attempts']],
  },
  {
    id: 'retry-wait',
    about: 'the wait before a repetition is one step of the backoff too long',
    witness: 'test/scenarios/toolRetry.test.ts',
    edits: [['backoffMs(retry, attempt - 1, allowed?.random ?? 0)', 'backoffMs(retry, attempt, allowed?.random ?? 0)']],
  },
  {
    id: 'backoff',
    about: 'the first wait is already multiplied',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['factor ** (failed - 1)', 'factor ** failed']],
  },
  {
    id: 'retry-after-floor',
    about: 'a wait that the provider requests is capped by the backoff',
    witness: 'test/scenarios/retries.test.ts',
    edits: [
      [
        'return failed.retryAfterMs;',
        'return Math.min(failed.retryAfterMs, backoffMs(retry, attempts.ofModel - 1, failed.random));',
      ],
    ],
  },
  {
    id: 'cost-reset',
    about: 'a restart resets the cost of the conversation',
    witness: 'test/subAgents/cost.test.ts',
    edits: [
      ['counters: countersOf(logState),\n  queue', 'counters: { ...countersOf(logState), costUsd: 0 },\n  queue'],
      [
        'runId: logState.runId, counters: countersOf(logState), ended',
        'runId: logState.runId, counters: { ...countersOf(logState), costUsd: 0 }, ended',
      ],
    ],
  },
  {
    id: 'key-after-restart',
    about: 'an idempotent call that runs again after a restart gets a new idempotency key',
    witness: 'test/scenarios/idempotencyKeys.test.ts',
    edits: [
      ['...(idempotencyKey !== undefined && { idempotencyKey }) };', '...(idempotencyKey !== undefined && {}) };'],
    ],
  },
  {
    id: 'window',
    about: 'one call more than maxParallelTools runs',
    witness: 'test/scenarios/toolRounds.test.ts',
    edits: [
      [
        'const live = Math.min(window, calls.length);',
        'const live = Math.min(sequential ? window : window + 1, calls.length);',
      ],
    ],
  },
  {
    id: 'readonly-some',
    about: 'parallelIfReadOnly runs a round in parallel if one of its calls is read-only',
    witness: 'test/scenarios/toolRounds.test.ts',
    edits: [['calls.every((call) => call.readOnly)', 'calls.some((call) => call.readOnly)']],
  },
  {
    id: 'decide-twice',
    about: 'a second, different decision on a suspension is reported as applied',
    witness: 'test/hostile/decisions.test.ts',
    edits: [
      [
        "if (first) return judgement(isSameDecision(first, decision) ? 'duplicate' : 'conflict');",
        "if (first && isSameDecision(first, decision)) return judgement('duplicate');",
      ],
    ],
  },
  {
    id: 'pruned-reported',
    about: "pruning does not subtract its tokens from the model's last reported usage",
    witness: 'test/scenarios/contextWindow.test.ts',
    edits: [['this.#reported = Math.max(0, this.#reported - saved / CHARACTERS_A_TOKEN);', '']],
  },
  {
    id: 'supersede-expired',
    about: 'early decisions of a superseded cycle are not reported as expired',
    witness: 'test/scenarios/earlyDecisions.test.ts',
    edits: [['...expiredEntries(runId, earlyDecisions(open)),', '']],
  },
  {
    id: 'steer-dropped',
    about: 'with queueDrain one, the steers after the first are dropped',
    witness: 'test/scenarios/queues.test.ts',
    edits: [
      [
        'return due.length === 0 ? {} : { steers: context.steers.slice(due.length) };',
        'return due.length === 0 ? {} : { steers: [] };',
      ],
    ],
  },
  {
    id: 'state-conflict',
    about: 'two calls that wrote the same value to one key conflict',
    witness: 'test/scenarios/runLifecycle.test.ts',
    edits: [['if ((written.get(key) ?? form) !== form) return true;', 'if (written.has(key)) return true;']],
  },
  {
    id: 'fallback-attempts',
    about: 'a fallback model continues the attempts of the previous one',
    witness: 'test/scenarios/retries.test.ts',
    edits: [['failedOf(event)), ofModel: 1 }', 'failedOf(event)), ofModel: attempts.ofModel }']],
  },
  {
    id: 'fallback-not-skipped',
    about: 'a request falls back to a model that does not accept its files',
    witness: 'test/scenarios/files.test.ts',
    edits: [['Math.max(attempts.model + 1, failed?.nextModel ?? 0)', 'attempts.model + 1']],
  },
  {
    id: 'refused-call-runs',
    about: 'a call that its gate refuses runs',
    witness: 'test/paths/states.test.ts',
    edits: [["guard: 'refusedByGate', target: 'Failed'", "guard: 'refusedByGate', target: 'ExecuteTool'"]],
  },
  {
    id: 'suspended-too-often-runs',
    about: 'a call that suspended too often runs once more',
    witness: 'test/paths/states.test.ts',
    edits: [
      [
        "{ guard: 'blocked', target: 'Blocked', actions: update(decided) },\n{ guard: 'suspendsTooOften', target: 'Failed',",
        "{ guard: 'blocked', target: 'Blocked', actions: update(decided) },\n{ guard: 'suspendsTooOften', target: 'ExecuteTool',",
      ],
    ],
  },
  {
    id: 'compact-one-more',
    about: 'a compaction takes one entry more than it may',
    witness: 'test/machines/contextSize.test.ts',
    edits: [['findIndex((seq) => seq > upToSeq)', 'findIndex((seq) => seq > upToSeq + 1)']],
  },
  {
    id: 'tokens-limit',
    about: 'a reply that reaches the limit of tokens exactly does not end the run',
    witness: 'test/scenarios/limitsRestart.test.ts',
    edits: [['counters.tokens >= limits.tokens', 'counters.tokens > limits.tokens']],
  },
  {
    id: 'kept-call-forgotten',
    about: 'a cancel that did not wait for a slow suspension leaves calls open that kept their turn',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [["durable || end.termination === 'Suspended'\n", 'durable\n']],
  },
  {
    id: 'unknown-price',
    about: 'an unknown price counts as zero for the budget',
    witness: 'test/scenarios/limitsRestart.test.ts',
    edits: [['counters.unpriced > 0 || counters.costUsd', 'counters.costUsd']],
  },
  {
    id: 'tokens-reset',
    about: 'a restart resets the tokens of the conversation',
    witness: 'test/scenarios/limitsRestart.test.ts',
    edits: [
      ['counters: countersOf(logState),\n  queue', 'counters: { ...countersOf(logState), tokens: 0 },\n  queue'],
      [
        'runId: logState.runId, counters: countersOf(logState), ended',
        'runId: logState.runId, counters: { ...countersOf(logState), tokens: 0 }, ended',
      ],
    ],
  },
  {
    id: 'empty-replies-reset',
    about: 'a restart resets the count of consecutive empty replies',
    witness: 'test/scenarios/limitsRestart.test.ts',
    edits: [
      ['counters: countersOf(logState),\n  queue', 'counters: { ...countersOf(logState), emptyReplies: 0 },\n  queue'],
      [
        'runId: logState.runId, counters: countersOf(logState), ended',
        'runId: logState.runId, counters: { ...countersOf(logState), emptyReplies: 0 }, ended',
      ],
    ],
  },
  {
    id: 'streaks-reset',
    about: 'a restart resets the count of consecutive identical calls',
    witness: 'test/scenarios/limitsRestart.test.ts',
    edits: [
      [
        'counters: countersOf(logState),\n  queue',
        'counters: { ...countersOf(logState), streaks: [], rounds: [] },\n  queue',
      ],
      [
        'runId: logState.runId, counters: countersOf(logState), ended',
        'runId: logState.runId, counters: { ...countersOf(logState), streaks: [], rounds: [] }, ended',
      ],
    ],
  },
  {
    id: 'streak',
    about: 'identical calls are counted over all rounds, not consecutively',
    witness: 'test/scenarios/limitsRestart.test.ts',
    edits: [
      [
        'return [...new Set(fingerprints)].map((fingerprint) => ({ fingerprint, count: (before.get(fingerprint) ?? 0) + 1 }));',
        'const kept = streaks.filter(({ fingerprint }) => !fingerprints.includes(fingerprint));\n  return [...kept, ...[...new Set(fingerprints)].map((fingerprint) => ({ fingerprint, count: (before.get(fingerprint) ?? 0) + 1 }))];',
      ],
    ],
  },
  {
    id: 'lost-decision-kept',
    about: 'a decision that could not be stored is still applied',
    witness: 'test/machines/runAssigns.test.ts',
    edits: [['!isLost(held)', 'held !== undefined']],
  },
  {
    id: 'summed-up-twice',
    about: 'the messages after a summary are summarized again before the same call',
    witness: 'test/paths/run.states.test.ts',
    edits: [
      [
        "exit: log(entries.contextEntries), on: { 'effect.done': gauged },",
        "exit: log(entries.contextEntries), on: { 'effect.done': [{ guard: 'compacts', target: 'compacting' }, ...gauged] },",
      ],
    ],
  },
  {
    id: 'summary-cost-uncounted',
    about: 'the tokens of a summary are missing from every sum of the log',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [
      [
        "if (entry.type === 'compaction') return entry.usage && { usage: entry.usage, costUsd: entry.costUsd ?? null };",
        '',
      ],
    ],
  },
  {
    id: 'summary-budget',
    about: 'a run ignores the cost of its summary, and calls the model beyond its budget',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [
      [
        "event.type === 'xstate.done.actor.compaction' ? { counters: countUsage(context.counters, event.output.spent) } : {};",
        "event.type === 'xstate.done.actor.compaction' ? { counters: context.counters } : {};",
      ],
    ],
  },
  {
    id: 'summary-outlasts-cancel',
    about: 'a cancel waits until the summary is complete',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [
      [
        "'xstate.done.actor.compaction': { target: 'compacted', actions: update(assigns.countCompaction) },",
        "'run.cancelled': {}, 'xstate.done.actor.compaction': { target: 'compacted', actions: update(assigns.countCompaction) },",
      ],
    ],
  },
  {
    id: 'summary-goes-on',
    about: 'the request for a summary is not a child of the run, so the end of the run does not end it',
    witness: 'test/paths/states.test.ts',
    edits: [
      ['const id = `${stemOf(context)}/summary/${attempt}`;', 'const id = `summary/${stemOf(context)}/${attempt}`;'],
    ],
  },
  {
    id: 'failed-summary-keeps-all',
    about: 'if no summary arrives, no other step frees room',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [
      ["{ runId, type: 'compaction', upToSeq, summary: kept ? `${DROPPED}\\n\\n${kept}` : DROPPED, ...spent },", ''],
    ],
  },
  {
    id: 'failed-summary-untold',
    about: 'no diagnostic reports dropped earlier messages',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [["{ runId, type: 'notice', code: 'compaction_failed', text },", '']],
  },
  {
    id: 'block-unheard',
    about: 'a hook that blocks a summary is called and ignored',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [['blocked: (args: Args) => preCompactAnswer(args)?.block !== undefined,', 'blocked: (_: Args) => false,']],
  },
  {
    id: 'instructions-once',
    about: 'a second attempt at a summary omits the instructions of hooks',
    witness: 'test/paths/states.test.ts',
    edits: [
      [
        'upToSeq, ...(instructions !== undefined && { instructions }) };',
        'upToSeq, ...(instructions !== undefined && attempt === 1 && { instructions }) };',
      ],
    ],
  },
  {
    id: 'denial-again-without-its-decision',
    about: 'a denial that was lost with its append is repeated, and its decision is never used',
    witness: 'test/scenarios/storeFaults.test.ts',
    edits: [["if (code === 'denied' && !lostTypes.get(callId)?.has('decision')) denied.add(callId);", '']],
  },
  {
    id: 'promotes-behind-what-was-lost',
    about: 'a followUp is promoted after the store lost a decision, and the call that waited for it is never closed',
    witness: 'test/scenarios/whatWaits.test.ts',
    edits: [["durable && !end.lost?.some((entry) => 'callId' in entry) &&", 'durable &&']],
  },
  {
    id: 'left-behind-a-retry',
    about: 'a followUp that arrived during a retry alone stays queued forever if the call waits again',
    witness: 'test/scenarios/retriedCalls.test.ts',
    edits: [["(stopReason(end) ?? 'completed')", 'stopReason(end)']],
  },
  {
    id: 'spent-forgotten-in-flight',
    about: 'tokens of a reply whose append is still pending do not count for the run that starts meanwhile',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [['(of?.waits ? of : context).counters;', '(of ?? context).counters;']],
  },
  {
    id: 'suspension-told-unstored',
    about: 'a run whose suspension a cancel did not await is reported as suspended, although this is unknown',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [[", ...(!durable && { termination: 'Error' as const })", '']],
  },
  {
    id: 'close-promotes',
    about: 'a close cancels a run and leaves the queue, so that a followUp is promoted',
    witness: 'test/scenarios/closing.test.ts',
    edits: [
      [
        "'close.requested': { target: 'cancelling', actions: [...emptyQueue, answer('cancelled')] }",
        "'close.requested': { target: 'cancelling', actions: answer('cancelled') }",
      ],
    ],
  },
  {
    id: 'close-once',
    about: 'a close does not return messages that a slow store queues later',
    witness: 'test/scenarios/closing.test.ts',
    edits: [["isDone = outcome === 'nothing' && !hasActs;", 'isDone = outcome !== undefined || !hasActs;']],
  },
  {
    id: 'rewind-beyond-a-missing-start',
    about: 'a rewind before a message whose run has no start removes the request before it',
    witness: 'test/machines/rewindPlaces.test.ts',
    edits: [
      ['(start?.runId === message.runId ? start.seq : message.seq) - 1', '(start ? start.seq : message.seq) - 1'],
    ],
  },
];
