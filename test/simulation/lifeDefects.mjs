/**
 * Defects that simulated lives must find. Each is planted alone into the sources while they are loaded. Invariant:
 * every kind of fault has a caught defect. `fault` is the event that makes the defect visible. An edit is a text that
 * occurs exactly once in `src/` and `machines/`, with its replacement.
 */

export const defects = [
  {
    id: 'cancel-without-results',
    about: 'a cancelled run writes no results for its unfinished calls',
    fault: 'cancel',
    edits: [
      [
        "return [...kept, ...closeCalls(withRound(context, event), 'cancelled'), ...stateWrites(context, event)];",
        'return kept;',
      ],
    ],
  },
  {
    id: 'second-cancel-reenters',
    about: 'a second cancel begins the run anew',
    fault: 'cancel, cancel',
    edits: [
      [
        "'cancel.requested': { actions: answer('joined') },\n            'close.requested'",
        "'cancel.requested': { target: '#CONVERSATION.busy', reenter: true },\n            'close.requested'",
      ],
    ],
  },
  {
    id: 'started-calls-replayed',
    about: 'calls that may have run run again after a restart, idempotent or not',
    fault: 'crash',
    edits: [['if (idempotent(record.name))', 'if (idempotent !== undefined)']],
  },
  {
    id: 'open-calls-not-recovered',
    about: 'opening the log of a dead process closes none of its calls',
    fault: 'crash',
    edits: [['entries.push(...repairOf(record, logState, idempotent));', '{ }']],
  },
  {
    id: 'stop-not-recovered',
    about: 'opening the log of a dead process does not close its run',
    fault: 'crash',
    edits: [["if (logState.cycle !== 'running')", "if (logState.cycle !== 'none')"]],
  },
  {
    id: 'suspended-call-dropped',
    about: 'a restart forgets the calls that wait for a person',
    fault: 'crash',
    edits: [['suspended.push({ call, suspension });', '{ }']],
  },
  {
    id: 'turns-forgotten',
    about: 'a restart counts the turns of a cycle anew',
    fault: 'crash, resume',
    edits: [
      ['counters: countersOf(logState),\n  queue', 'counters: { ...countersOf(logState), turns: 0 },\n  queue'],
      [
        'runId: logState.runId, counters: countersOf(logState), ended',
        'runId: logState.runId, counters: { ...countersOf(logState), turns: 0 }, ended',
      ],
    ],
  },
  {
    id: 'unknown-outcome-run-again',
    about: 'a call whose outcome is unknown runs again automatically',
    fault: 'crash, resume',
    edits: [
      [
        'filter(isRetried).map(rerunOf)',
        "filter(({ outcome, status }) => outcome === 'unknown' && status === 'ended').map(rerunOf)",
      ],
    ],
  },
  {
    id: 'duplicate-completion-accepted',
    about: 'a completion that comes twice is delivered twice',
    fault: 'delivered-twice',
    edits: [
      [
        'const asker = this.#requesters.get(id);\n    this.#requesters.delete(id);\n    return asker;',
        'return this.#requesters.get(id);',
      ],
    ],
  },
  {
    id: 'commit-after-effect',
    about: 'the effects of a step begin before its entries are durable',
    fault: 'store, crash',
    edits: [
      [
        'if (this.#appends.add(step)) return true;',
        'for (const request of step.asks.splice(0)) if (this.#requests.isOpen(request)) this.#journal.start(request);\n            if (this.#appends.add(step)) return true;',
      ],
    ],
  },
  {
    id: 'decision-not-durable',
    about: 'a decision is carried out and never logged',
    fault: 'decide',
    edits: [
      [
        "event.type === 'decision.arrived' ? [{ runId, type: 'decision', ...event.held }] : []",
        "event.type === 'decision.arrived' ? [] : [{ runId, type: 'decision' }]",
      ],
    ],
  },
  {
    id: 'decision-committed-after-replay',
    about: 'a decision is logged one append late',
    fault: 'decide',
    edits: [
      [
        'return this.#append(() => reconcile(this.#logState, entries, this.#transcript.endsWithAssistant()), at);',
        "const due = [...entries.filter(({ type }) => type !== 'decision'), ...(this.held ?? [])];\n        this.held = entries.filter(({ type }) => type === 'decision');\n        return this.#append(() => reconcile(this.#logState, due, this.#transcript.endsWithAssistant()), at);",
      ],
    ],
  },
  {
    id: 'decision-of-cut-replay-forgotten',
    about: 'a replay that is cut during afterToolExecute keeps its result and not its decision',
    fault: 'plugin-slow, cancel',
    edits: [['const consumed = outcome ? consumedDecision(context, callId) : [];', 'const consumed = [];']],
  },
  {
    id: 'decision-not-consumed',
    about: 'no entry records that a decision was carried out',
    fault: 'decide',
    edits: [['if (!replay?.decision)', 'if (replay)']],
  },
  {
    id: 'decision-not-removed',
    about: 'a decision counts for the next suspension of its call too',
    fault: 'decide, tool-suspends',
    edits: [
      [
        'held.callId === waiting.call.callId && held.suspension === waiting.suspension',
        'held.callId === waiting.call.callId',
      ],
      [
        "return output.outcome === 'suspended' && held.suspension === output.suspension;",
        "return output.outcome === 'suspended';",
      ],
    ],
  },
  {
    id: 'early-decision-dropped',
    about: 'a decision that comes before its call is suspended is forgotten',
    fault: 'decide',
    edits: [["event.type === 'decision.arrived' ? { decisions: [...context.decisions, event.held] } : {}", '({})']],
  },
  {
    id: 'suspension-not-counted',
    about: 'a second suspension has the number of the first',
    fault: 'tool-suspends, decide',
    edits: [['const suspension = context.suspension + 1;', 'const suspension = 1;']],
  },
  {
    id: 'steer-lost',
    about: 'steers are taken off the queue and not delivered',
    fault: 'steer',
    edits: [['\n  log(entries.steerEntries),', '']],
  },
  {
    id: 'follow-up-lost-on-error',
    about: 'a run that ends with an error takes the queue with it',
    fault: 'followUp, model',
    edits: [
      [
        "waiting: end.termination === 'Suspended' && !isRetry };",
        "waiting: end.termination === 'Suspended' && !isRetry, ...(end.termination === 'Error' && { queue: [] }) };",
      ],
    ],
  },
  {
    id: 'queue-last-in-first-out',
    about: 'the last queued followUp is promoted first',
    fault: 'followUp',
    edits: [
      [
        "=>\n  queue.find(({ kind }) => kind === 'followUp');",
        "=>\n  [...queue].reverse().find(({ kind }) => kind === 'followUp');",
      ],
    ],
  },
  {
    id: 'budget-off-by-two',
    about: 'a cycle has two turns more than it may',
    fault: 'none',
    edits: [['counters.turns >= limits.turns', 'counters.turns >= limits.turns + 2']],
  },
  {
    id: 'retry-skips-limit',
    about: 'a model call is tried once more than it may',
    fault: 'model',
    edits: [
      [
        'return context.attempts.ofModel < context.retry.attempts;',
        'return context.attempts.ofModel <= context.retry.attempts;',
      ],
    ],
  },
  {
    id: 'retry-after-abort',
    about: 'a cancel during the wait before another attempt begins that attempt',
    fault: 'model, cancel',
    edits: [
      [
        "ask(askRetryWait)],\n    on: { 'timer.elapsed': { guard: 'waitIsOver', target: 'attempting' } },",
        "ask(askRetryWait)],\n    on: { 'timer.elapsed': { guard: 'waitIsOver', target: 'attempting' }, 'run.cancelled': { target: 'attempting' } },",
      ],
    ],
  },
  {
    id: 'late-settlement-written',
    about: 'the output of a tool after the cancel of its call becomes a second result',
    fault: 'tool-late, cancel',
    edits: [
      [
        "return [diagnostic(request.runId, 'late_result', { callId: request.callId })];",
        "return [{ runId: request.runId, type: 'tool-result', callId: request.callId, outcome: 'succeeded', content: value.content }];",
      ],
      ['return !isOver(record);', 'return true;'],
    ],
  },
  {
    id: 'results-in-completion-order',
    about: 'the model is shown results in the order in which they came',
    fault: 'none',
    edits: [
      [
        'return this.#replace(slot.index, message);',
        'this.#messages.splice(slot.index, 1);\n            for (const other of this.#slots.values()) if (other.index > slot.index) other.index -= 1;\n            slot.index = this.#messages.length;\n            return this.#add(message);',
      ],
    ],
  },
  {
    id: 'placeholder-not-replaced',
    about: 'the model still receives a placeholder though the result is there',
    fault: 'decide',
    edits: [
      [
        "if (!slot || slot.holds === 'unknown' || slot.holds === 'result') return;",
        "if (!slot || slot.holds === 'placeholder' || slot.holds === 'unknown' || slot.holds === 'result') return;",
      ],
    ],
  },
  {
    id: 'past-rewritten',
    about: 'a late result replaces a result that the model has answered already',
    fault: 'decide',
    edits: [['if (!spoken) {', 'if (!slot.late) {']],
  },
  {
    id: 'partial-text-kept',
    about: 'the text of an attempt that failed becomes a reply',
    fault: 'model',
    edits: [
      [
        'this.reset();\n      return { ...failureOf(error), random: random(), model: model.id };',
        "this.#reply.end();\n      if (this.#streamed) return { kind: 'reply', items: this.#reply.items, finish: 'stop', usage: this.#usage };\n      return { ...failureOf(error), random: random(), model: model.id };",
      ],
    ],
  },
  {
    id: 'missing-finish-accepted',
    about: 'a stream that ends without a reason counts as a reply',
    fault: 'model-cut',
    edits: [["throw new ModelError({ code: 'stream-incomplete' });", "this.#finish = 'stop';"]],
  },
  {
    id: 'talk-behind-finish-kept',
    about: 'text of a model after the end of its reply is part of the reply',
    fault: 'model-talks-on',
    edits: [
      ['return this.#finish === undefined;', 'return true;'],
      ["if (this.#finish !== undefined && part.type !== 'diagnostic')", 'if (this.#finish === null)'],
    ],
  },
  {
    id: 'repeated-id-merged',
    about: 'a call with an id of an earlier call counts as that call',
    fault: 'a repeated id',
    edits: [['if (this.#issued?.has(id) || this.#logState.calls.has(id))', 'if (id === undefined)']],
  },
  {
    id: 'listener-left',
    about: 'a run that is over still listens to the signal of its caller',
    fault: 'send with a signal',
    edits: [["this.onFinished(() => signal.removeEventListener('abort', aborted));", '']],
  },
  {
    id: 'timer-left',
    about: 'the time limit of a model call is not stopped when it is over',
    fault: 'none',
    edits: [['clock.stop();', '']],
  },
  {
    id: 'tool-timer-left',
    about: 'the time limit of a tool is not stopped when it has answered',
    fault: 'none',
    edits: [['settled = true;\n            stop();', 'settled = true;']],
  },
  {
    id: 'model-never-times-out',
    about: 'a silent model holds its run for ever',
    fault: 'model-hang',
    edits: [
      ["this.#expire(new ModelError({ code: 'timeout', message: `the model sent nothing for ${allowed} ms` }));", ''],
    ],
  },
  {
    id: 'tool-never-times-out',
    about: 'a tool that never answers holds its run for ever',
    fault: 'tool-deaf',
    edits: [["resolve(withRetry(erred('timeout', words), 'timeout'));", 'String(words);']],
  },
  {
    id: 'effects-outlive-cancel',
    about: 'the effects of a run are forgotten at its end, and not ended',
    fault: 'cancel',
    edits: [['this.#underWay.delete(id);\n      stop?.();', 'this.#underWay.delete(id);']],
  },
  {
    id: 'cancel-waits-for-the-store',
    about: 'a cancel waits for the store without a limit',
    fault: 'store-slow, cancel',
    edits: [['const GIVE_UP_MS = 90;', 'const GIVE_UP_MS = 9000;']],
  },
  {
    id: 'cancel-waits-for-hooks',
    about: 'the last hooks of a cancelled run have as much time as others',
    fault: 'plugin-deaf, cancel',
    edits: [['const CANCELLED_RUN_END_MS = 30;', 'const CANCELLED_RUN_END_MS = 3000;']],
  },
  {
    id: 'no-stop-on-store-failure',
    about: 'a run that the store failed writes no stop',
    fault: 'store-refused',
    edits: [
      [
        "return [...over, { runId, type: 'run-stop', reason",
        "if (cause === 'store')\n        return [boundary];\n    return [...over, { runId, type: 'run-stop', reason",
      ],
    ],
  },
  {
    id: 'stop-twice',
    about: 'a cancelled run writes its stop twice',
    fault: 'cancel',
    edits: [
      [
        "return [...kept, ...closeCalls(withRound(context, event), 'cancelled'), ...stateWrites(context, event)];",
        "return [...kept, ...closeCalls(withRound(context, event), 'cancelled'), { runId, type: 'run-stop', reason: 'interrupted' }];",
      ],
      ['if (runId !== this.#runId)', "if (type !== '')\n            return true;\n        if (runId !== this.#runId)"],
    ],
  },
  {
    id: 'kept-call-runs-behind-its-end',
    about: 'a run whose end could not be stored leaves calls to the next that are closed by then',
    fault: 'store-refused',
    edits: [
      [
        "durable || end.termination === 'Suspended' ? { suspended, kept,",
        "durable || end.termination !== '' ? { suspended, kept,",
      ],
    ],
  },
  {
    id: 'half-promotion-not-recovered',
    about: 'a promotion that was cut in the middle of its append is made a second time',
    fault: 'crash in an append',
    edits: [['...cutPromotion(logState),', '']],
  },
  {
    id: 'seq-reused-after-torn-append',
    about: 'a torn append counts as an append without entries, and its numbers are used again',
    fault: 'crash in an append',
    edits: [
      [
        'const fresh = entries.length === 0;',
        "while (entries.length > 1 && entries.at(-1).type !== 'checkpoint') entries.pop();\n    const fresh = entries.length === 0;",
      ],
      ['if (expectedSeq !== next)', 'if (expectedSeq > next)'],
      ['entry.seq !== next + index', 'entry.seq !== expectedSeq + index'],
    ],
  },
  {
    id: 'last-record-lost',
    about: 'opening a log leaves out its last entry',
    fault: 'crash',
    edits: [['const until = stored.length;', 'const until = stored.length - 1;']],
  },
  {
    id: 'order-not-checked',
    about: 'a store accepts entries out of sequence, and a writer numbers from one too low',
    fault: 'crash',
    edits: [
      ['if (expectedSeq !== next)', 'if (expectedSeq > next)'],
      ['entry.seq !== next + index', 'entry.seq !== expectedSeq + index'],
      ['const until = stored.length;', 'const until = stored.length - 1;'],
    ],
  },
  {
    id: 'lease-not-checked',
    about: 'a conversation that is open is opened a second time',
    fault: 'a second opener',
    edits: [['if (!this.#leased.has(id))', 'if (id)']],
  },
  {
    id: 'subscriber-misses-entries',
    about: 'a subscriber misses the first entry after its subscription',
    fault: 'watch',
    edits: [['if (entry.seq >= next)', 'if (entry.seq > next)']],
  },
  {
    id: 'clock-jump-rings-timers',
    about: 'timers are measured by the wall clock, so that setting it rings them',
    fault: 'jump',
    edits: [
      [
        'this.#underWay.set(id, stop);\n                return;',
        'this.#underWay.set(id, stop);\n                (this.due ??= new Map()).set(id, this.#options.now() + ms);\n                return;',
      ],
      [
        'const completion = this.#urgent.shift() ?? this.#next();',
        "for (const [id, at] of this.due ?? []) {\n            if (this.#options.now() <= at) continue;\n            this.due.delete(id);\n            this.#underWay.get(id)?.();\n            if (this.#underWay.delete(id)) this.#queue.push({ completion: { type: 'timer.elapsed', id } });\n        }\n        const completion = this.#urgent.shift() ?? this.#next();",
      ],
    ],
  },
  {
    id: 'deny-after-allow-ignored',
    about: 'after a check has let a call pass, later checks are ignored',
    fault: 'guard-forbids',
    edits: [['if (answer.block !== undefined)', 'if (answer.block !== undefined && plugin === this.#plugins[0])']],
  },
  {
    id: 'approval-not-asked',
    about: 'a tool that needs approval runs without it',
    fault: 'none',
    edits: [['if (!needsApproval)', 'if (needsApproval !== undefined)']],
  },
  {
    id: 'denial-runs',
    about: 'a call that was denied is replayed like one that was approved',
    fault: 'decide',
    edits: [
      [
        "const isDenied = (replay: Replay | undefined): boolean => replay?.decision?.action === 'deny';",
        'const isDenied = (replay) => replay === null;',
      ],
    ],
  },
  {
    id: 'authorizer-ignored',
    about: 'an unauthorized person decides',
    fault: 'unauthorized',
    edits: [
      [
        'if (!(await isAllowed(() => authorize(decision, call))))',
        'if ((await isAllowed(() => authorize(decision, call))) === undefined)',
      ],
    ],
  },
  {
    id: 'arguments-changed',
    about: 'a tool receives other arguments than the log has',
    fault: 'none',
    edits: [['args: ownArgs(result.value)', "args: Object.freeze({ ...ownArgs(result.value), text: 'other' })"]],
  },
  {
    id: 'arguments-open-to-change',
    about: 'a tool can change its arguments',
    fault: 'tool-meddles',
    edits: [
      [
        'copy[key] = ownArgs(child, copies);\n  return Object.freeze(copy);',
        'copy[key] = ownArgs(child, copies);\n  return copy;',
      ],
    ],
  },
  {
    id: 'key-not-renewed',
    about: 'an execution after a new suspension has the key of the previous execution',
    fault: 'tool-suspends, decide',
    edits: [
      [
        '`${partOf(conversationId)}/${partOf(call.callId)}/${suspension}`',
        '`${partOf(conversationId)}/${partOf(call.callId)}/${suspension * 0}`',
      ],
    ],
  },
  {
    id: 'secret-not-redacted',
    about: 'secrets are stored without redaction',
    fault: 'a secret in a result',
    edits: [['...this.redact.entry(entry)', '...entry']],
  },
  {
    id: 'receipt-not-settled',
    about: 'the receipt of a delivered message never settles',
    fault: 'steer, followUp',
    edits: [["this.#receipts.settle(entry.messageId, 'delivered');", '']],
  },
  {
    id: 'lost-steer-not-told',
    about: 'a steer that could not be stored is reported to nobody',
    fault: 'store-refused, steer',
    edits: [
      [
        'if (steered) void this.#receipts.rejectMessage(messageId, error, handle, this.#runtime);\n        else void',
        'if (!steered) void',
      ],
    ],
  },
  {
    id: 'applied-before-durable',
    about: 'a decision is reported as applied before it is durable',
    fault: 'store-slow, decide',
    edits: [
      ["if (request.kind === 'ended') {\n      this.#ends", 'if (REPORT_KINDS.has(request.kind)) {\n      this.#ends'],
    ],
  },
  {
    id: 'entries-shown-too-early',
    about: 'entries are shown before they are durable',
    fault: 'store-refused',
    edits: [
      [
        'await this.#handle.append(stamped, this.entries.length);\n        this.#landed.push(...stamped);',
        'const first = this.entries.length;\n        this.#landed.push(...stamped);\n        this.#publish();\n        await this.#handle.append(stamped, first);',
      ],
    ],
  },
  {
    id: 'view-misses-results',
    about: 'a live view lacks the results of tools',
    fault: 'watch',
    edits: [
      [
        'this.#runtime.log.listen((entry) => projector.push(entry));',
        "this.#runtime.log.listen((entry) => entry.type !== 'tool-result' && projector.push(entry));",
      ],
    ],
  },
  {
    id: 'checkpoint-in-the-middle',
    about: 'a checkpoint is stored before the entries that it closes',
    fault: 'none',
    edits: [
      [
        'return this.#append(() => reconcile(this.#logState, entries, this.#transcript.endsWithAssistant()), at);',
        "return this.#append(() => [...reconcile(this.#logState, entries, this.#transcript.endsWithAssistant())].sort((a, b) => (b.type === 'checkpoint') - (a.type === 'checkpoint')), at);",
      ],
    ],
  },
  {
    id: 'child-survives-parent',
    about: 'a sub-agent continues after the cancel of its call',
    fault: 'cancel, sub-agents',
    edits: [
      ['void this.#shutDown(entry.callId, group);', '{ }'],
      ["signal.addEventListener('abort', cancel, { once: true });", ''],
    ],
  },
  {
    id: 'child-event-in-parent-log',
    about: 'the output of a sub-agent is written into the log of its parent too',
    fault: 'sub-agents',
    edits: [
      [
        'runtime.live.join(opened.runtime.live, callId);',
        'opened.runtime.log.listen(({ seq, at, conversationId, ...entry }) => void runtime.log.append([entry], at));',
      ],
    ],
  },
  {
    id: 'lost-suspension-without-result',
    about: 'a call whose suspension could not be stored is left without a result',
    fault: 'store-refused, tool-suspends',
    edits: [
      [
        "stopped: 'open', decision: 'open', 'tool-suspended': 'unknown' }",
        "stopped: 'open', decision: 'open', 'tool-suspended': 'open' }",
      ],
    ],
  },
  {
    id: 'checkpoint-inside-append',
    about: 'a checkpoint keeps its place in the step, though entries of the step follow it',
    fault: 'decide',
    edits: [['if (first < 0 || first === entries.length - 1)', 'if (first >= -1)']],
  },
  {
    id: 'reading-ends-reply',
    about: 'reading the messages ends the reply that is being streamed',
    fault: 'watch',
    edits: [
      ['return [...this.#messages, ...this.#open.messages];', 'this.#close();\n        return [...this.#messages];'],
      ['this.#folded.push(entry);', 'this.#live.next(entry);'],
    ],
  },
  {
    id: 'edited-arguments-ignored',
    about: "a call runs on the model's arguments, though a person edited them",
    fault: 'decide',
    edits: [["if (decision?.action === 'edit') return { callId, name, args: decision.args };", '']],
  },
  {
    id: 'sequential-runs-two',
    about: 'two calls of a sequential round run at once',
    fault: 'none',
    edits: [['const window = sequential ? 1 : input.window;', 'const window = sequential ? 2 : input.window;']],
  },
  {
    id: 'tool-signal-of-nobody',
    about: 'a tool receives a signal that nobody aborts',
    fault: 'cancel, tool-deaf',
    edits: [['source.made ??= toolSignal(source);', 'source.made ??= new AbortController().signal;']],
  },
  {
    id: 'no-deadline',
    about: 'the time limit of a run never ends it',
    fault: 'tool-deaf, model-hang',
    edits: [
      [
        "return ms === false || context.trigger.kind === 'retry'",
        "return ms !== 0 || context.trigger.kind === 'retry'",
      ],
    ],
  },
  {
    id: 'waiting-sub-agent-costs-nothing',
    about: 'the parent does not receive the usage of a sub-agent from before it waits',
    fault: 'sub-agents, decide',
    edits: [['if (spent) await this.#options.logChange({ spent });', 'void spent;']],
  },
  {
    id: 'usage-twice',
    about: 'the usage of each reply is logged twice as large',
    fault: 'none',
    edits: [
      [
        'const { finish, usage, extra } = raw;',
        'const { finish, extra } = raw;\n  const usage = { ...raw.usage, inputTokens: 2 * raw.usage.inputTokens };',
      ],
    ],
  },
  {
    id: 'key-lost-at-restart',
    about: 'a start that is repeated after a restart makes a key of its own, which differs in a fork',
    fault: 'crash, fork',
    edits: [
      [
        'const rerun = { call: replayable(record), suspension, ...(idempotencyKey !== undefined && { idempotencyKey }) };',
        'const rerun = { call: replayable(record), suspension, ...(idempotencyKey === null && { idempotencyKey }) };',
      ],
    ],
  },
  {
    id: 'promoted-behind-success-only',
    about: 'a followUp is promoted only after a completed run, whatever the policy is',
    fault: 'cancel, model',
    edits: [
      ['reasons.includes(reasonOf(event));', "reasonOf(event) === 'completed' && reasons.includes('completed');"],
    ],
  },
  {
    id: 'state-written-twice',
    about: 'the state writes of a tool are logged twice',
    fault: 'none',
    edits: [
      [
        "output?.writes ? [{ runId, type: 'state-changed' as const, callId: output.callId, writes: output.writes }] : [],",
        "output?.writes ? [1, 2].map(() => ({ runId, type: 'state-changed' as const, callId: output.callId, writes: output.writes })) : [],",
      ],
    ],
  },
  {
    id: 'failed-attempt-not-reset',
    about: 'subscribers receive no reset after the text of a failed attempt',
    fault: 'model-cut',
    edits: [["this.#options.live()?.({ type: 'reset', runId: this.runId });", '']],
  },
  {
    id: 'repeated-calls-unlimited',
    about: 'a model may make the same call with the same result for ever',
    fault: 'none',
    edits: [
      ["count >= limits.identicalCalls) ? 'no_progress'", "count >= limits.identicalCalls * 1000) ? 'no_progress'"],
    ],
  },
  {
    id: 'suspended-slot-done',
    about: 'the round counts a suspended call as done',
    fault: 'tool-suspends, cancel',
    edits: [["status: output.outcome === 'suspended' ? 'suspended' : 'done', output }", "status: 'done', output }"]],
  },
  {
    id: 'one-repair-too-many',
    about: 'a model is asked once more than limits.outputRepairs allows for a valid answer',
    fault: 'none',
    edits: [
      ['if (this.#repaired(request.runId) < outputRepairs)', 'if (this.#repaired(request.runId) <= outputRepairs)'],
    ],
  },
  {
    id: 'repairs-of-all-runs',
    about: 'repairs of earlier runs count against the repairs of this run',
    fault: 'none',
    edits: [
      [
        "return entries.filter((entry) => entry.runId === runId && entry.type === 'continuation'",
        "return entries.filter((entry) => entry.type === 'continuation'",
      ],
    ],
  },
  {
    id: 'answer-though-it-misses',
    about: 'an answer that does not fit its schema counts',
    fault: 'none',
    edits: [['if (!result.issues) return {', 'if (result) return {']],
  },
  {
    id: 'answer-not-in-the-result',
    about: 'the result of a run lacks the logged answer',
    fault: 'none',
    edits: [['answer = { output: entry.value };', 'answer = {};']],
  },
  {
    id: 'schema-of-a-message-lost',
    about: 'the schema of a message is forgotten when its run resumes',
    fault: 'cancel, resume',
    edits: [["if (entry.type === 'run-resumed') run = entry.of;", '']],
  },
  {
    id: 'fence-not-read',
    about: 'an answer in a code fence does not count',
    fault: 'none',
    edits: [['FENCED.exec(text.trim())?.[1] ?? text', 'text']],
  },
  {
    id: 'sequential-goes-on-behind-suspended',
    about: 'a sequential round continues after a call that waits',
    fault: 'none',
    edits: [["steered !== undefined || (sequential && last?.outcome === 'suspended');", 'steered !== undefined;']],
  },
  {
    id: 'results-not-compared',
    about: 'calls with other results count as repeated',
    fault: 'none',
    edits: [["hash([outcome, code, ...parts].join('\\n'))", "hash([outcome, code].join('\\n'))"]],
  },
  {
    id: 'summary-not-in-living-counts',
    about: 'the usage of a summary counts against the limits only after a restart',
    fault: 'none',
    edits: [['{ counters: countUsage(context.counters, event.output.spent) }', '{}']],
  },
  {
    id: 'tokens-counted-by-the-message',
    about: 'a conversation counts its tokens anew at each message, and all of them after a restart',
    fault: 'none',
    edits: [
      [
        'counters: newCycle(spent(context, of))',
        'counters: newCycle(of ? spent(context, of) : { ...context.counters, tokens: 0 })',
      ],
    ],
  },
  {
    id: 'tool-time-not-held',
    about: 'a call may take ten times as long as its limit',
    fault: 'tool-deaf',
    edits: [['const stop = setTimer(timeoutMs, () => {', 'const stop = setTimer(10 * timeoutMs, () => {']],
  },
  {
    id: 'result-characters-counted',
    about: 'the limit of a result counts characters, not bytes',
    fault: 'tool-long',
    edits: [['(words.length <= bytesMax && bytesOf(words) <= bytesMax)', 'words.length <= bytesMax']],
  },
  {
    id: 'one-decision-more',
    about: 'a conversation holds one decision more than it may',
    fault: 'decide',
    edits: [['runtime.commands.countOf(command.type) >= most', 'runtime.commands.countOf(command.type) > most']],
  },
  {
    id: 'earlier-runs-take-no-time',
    about: 'after a resume only the time of the last run counts for the limit of a cycle',
    fault: 'crash, resume',
    edits: [['logState.cycleMs += Math.max(', 'logState.cycleMs = Math.max(']],
  },
  {
    id: 'time-without-process-counted',
    about: 'the time until a cycle is resumed counts as time in which it ran',
    fault: 'crash, resume',
    edits: [['logState.reply = noReply();\n  logState.workedUntil = at;', 'logState.reply = noReply();']],
  },
  {
    id: 'abort-unheard',
    about: "a caller's abort signal does not end its run",
    fault: 'abort',
    edits: [
      [
        'void (steered ? this.#takeBack(message) : this.cancel(handle))',
        'void (steered ? this.#takeBack(message) : handle.result)',
      ],
    ],
  },
  {
    id: 'settled-call-listed',
    about: 'a call that the host has settled stays in the list of those whose outcome is unknown',
    fault: 'crash, settle',
    edits: [["logged.unsettled.delete(entry.callId);\n      if ('retry' in entry.how)", "if ('retry' in entry.how)"]],
  },
];
