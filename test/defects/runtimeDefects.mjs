/**
 * Defects of the code around the charts: driver, log, gate, forks, options, replays. Each has the test file that must
 * detect it.
 */
export const runtime = [
  {
    id: 'stale-ask',
    about: 'an effect that was dropped while its append was pending still starts',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [['if (!this.#requests.isOpen(request)) continue;', '']],
  },
  {
    id: 'decision-stray-field',
    about: 'a decision may have the fields of any other action',
    witness: 'test/hostile/malformedDecisions.test.ts',
    edits: [['!FIELDS[action].includes(key)', '!Object.values(FIELDS).flat().includes(key)']],
  },
  {
    id: 'drop-order',
    about: 'effects are ended in start order instead of reverse',
    witness: 'test/scenarios/cancel.test.ts',
    edits: [['for (const id of ids.reverse())', 'for (const id of ids)']],
  },
  {
    id: 'hurry-timers',
    about: 'the timers of a cancel remain after its end',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [['for (const stop of this.#stops) stop();\n    this.#stops = [];', 'this.#stops = [];']],
  },
  {
    id: 'signal-lost',
    about: 'a tool receives a signal that is never aborted',
    witness: 'test/hostile/toolTiming.test.ts',
    edits: [['source.made ??= toolSignal(source);', 'source.made ??= new AbortController().signal;']],
  },
  {
    id: 'listen-order',
    about: 'subscribers are notified before the folds of the library',
    witness: 'test/scenarios/atTheStop.test.ts',
    edits: [
      [
        'for (const listener of this.#listeners) listener(entry);\n      this.#folded.push(entry);',
        'this.#live.next(entry);\n      for (const listener of this.#listeners) listener(entry);',
      ],
    ],
  },
  {
    id: 'listener-text',
    about: 'only the raw form of a secret is redacted, not its JSON or URL form',
    witness: 'test/hostile/secrets.test.ts',
    edits: [['return [...new Set(forms)];', 'return [secret];']],
  },
  {
    id: 'redact-order',
    about: 'of two secrets the shorter one, a prefix of the longer, is redacted first',
    witness: 'test/hostile/secrets.test.ts',
    edits: [['kept = Math.max(kept, to);', 'kept = to;']],
  },
  {
    id: 'redact-keys',
    about: 'keys of objects are not redacted',
    witness: 'test/hostile/sinks.test.ts',
    edits: [['[freeKey(clean(key), key, value, taken), cleaned(child, clean)]', '[key, cleaned(child, clean)]']],
  },
  {
    id: 'deadline-cycle',
    about: 'the time of earlier runs of a cycle is not counted against runMs',
    witness: 'test/scenarios/limits.test.ts',
    edits: [['request.ofCycle ? request.ms - this.#options.cycleMs() : request.ms', 'request.ms']],
  },
  {
    id: 'deadline-spent',
    about: 'a resumed run whose time is spent calls the model before it ends',
    witness: 'test/scenarios/limits.test.ts',
    edits: [["if (request.ofCycle && ms <= 0) return this.put({ type: 'timer.elapsed', id });", '']],
  },
  {
    id: 'lru',
    about: 'the cache of images drops the first shown one, not the least recently shown one',
    witness: 'test/content/attachmentPreparer.test.ts',
    edits: [['this.#cache.delete(key);\n      this.#cache.set(key, cached);', '']],
  },
  {
    id: 'weight',
    about: 'the room of the image cache is never released: once full, each image is scaled for every request',
    witness: 'test/content/attachmentPreparer.test.ts',
    edits: [['this.#weight -= weightOf(kept);', '']],
  },
  {
    id: 'failed-gallery',
    about: 'a gallery that could not be loaded is never tried again',
    witness: 'test/content/attachmentPreparer.test.ts',
    edits: [
      [
        'preparer = new AttachmentPreparer({ limits:',
        "this.#preparers.set(model, { shown: () => Promise.reject(new Error('it was not there')) } as never);\n      preparer = new AttachmentPreparer({ limits:",
      ],
    ],
  },
  {
    id: 'approval-throws',
    about: 'a needsApproval that throws lets the call pass',
    witness: 'test/hostile/checks.test.ts',
    edits: [
      [
        "diagnose('approval_error', { tool: definition.name, message: thrownText(error) });",
        "diagnose('approval_error', { tool: definition.name, message: thrownText(error) });\n        return undefined;",
      ],
    ],
  },
  {
    id: 'edited-after-approval',
    about: 'arguments that a plugin changed after the approval run without a new approval',
    witness: 'test/scenarios/approvedArguments.test.ts',
    edits: [
      [
        'const holds = decision !== undefined && this.#same(args, preparation.prepared.call.args);',
        'const holds = decision !== undefined;\n    void this.#same;',
      ],
    ],
  },
  {
    id: 'block-after-suspend',
    about: 'after a suspension by one plugin the next plugin is not called',
    witness: 'test/scenarios/plugins.test.ts',
    edits: [['suspend ??= answer.suspend;', 'suspend ??= answer.suspend;\n      if (suspend) break;']],
  },
  {
    id: 'authorize-rejects',
    about: 'an authorizer that fails lets the decision pass',
    witness: 'test/hostile/malformedDecisions.test.ts',
    edits: [
      [
        'return (await ask()) === true;\n  } catch {\n    return false;',
        'return (await ask()) === true;\n  } catch {\n    return true;',
      ],
    ],
  },
  {
    id: 'queue-limit',
    about: 'the queue accepts one message more than its limit',
    witness: 'test/scenarios/receipts.test.ts',
    edits: [['standing.queued >= standing.policies.limits.queue', 'standing.queued > standing.policies.limits.queue']],
  },
  {
    id: 'iterator-return',
    about: 'a reader that stops reading a run still receives items',
    witness: 'test/scenarios/streams.test.ts',
    edits: [
      ['return(): Promise<IteratorResult<Item>> {\n    this.#end();', 'return(): Promise<IteratorResult<Item>> {'],
    ],
  },
  {
    id: 'result-cost',
    about: 'the cost of a run omits its sub-agents',
    witness: 'test/subAgents/cost.test.ts',
    edits: [
      [
        'const cost = usageOf(entry);\n    if (cost)',
        "const cost = usageOf(entry);\n    if (cost && entry.type === 'model-reply')",
      ],
    ],
  },
  {
    id: 'fork-blobs',
    about: 'a fork names blobs that are not beside its log',
    witness: 'test/journals/travel.test.ts',
    edits: [
      [
        'from.getBlob && to.putBlob ? to.putBlob(await from.getBlob(reference), mediaType) : reference;',
        'from.getBlob && to.putBlob && mediaType ? reference : reference;',
      ],
    ],
  },
  {
    id: 'fork-conversation',
    about: 'a fork keeps the parent of the sub-agent that it was copied from',
    witness: 'test/subAgents/forks.test.ts',
    edits: [['delete forked.parent;', '']],
  },
  {
    id: 'close-twice-answers',
    about: 'after a close, pending acts are never answered',
    witness: 'test/scenarios/deadStore.test.ts',
    edits: [["this.#step({ type: 'close' }, why);", 'void why;']],
  },
  {
    id: 'feed-leak',
    about: 'signals of the runtime stay subscribed when nobody follows a run',
    witness: 'test/scenarios/streams.test.ts',
    edits: [['signals.unsubscribe();\n      followers.delete(take);', 'followers.delete(take);']],
  },
  {
    id: 'no-attempt-allowed',
    about: 'a policy with zero attempts is accepted',
    witness: 'test/docs/policies.test.ts',
    edits: [['attempts: whole(4, { least: 1 }),', 'attempts: whole(4),']],
  },
  {
    id: 'choice-given-twice',
    about: 'a list of choices may contain one twice',
    witness: 'test/policies.test.ts',
    edits: [['new Set(value).size === value.length && value.every((each) => choices', 'value.every((each) => choices']],
  },
  {
    id: 'replay-forgets-order',
    about: 'a replay ignores that an append was overtaken',
    witness: 'test/journals/replayAnything.test.ts',
    edits: [['if (failure && (overtaken || carried)) return;', '']],
  },
  {
    id: 'replay-executes',
    about: 'a replay executes calls whose results are recorded',
    witness: 'test/journals/replay.test.ts',
    edits: [
      [
        'if (REPORT_KINDS.has(request.kind)) this.#inner.start(request);\n    else this.#requestedIds.add(request.id);',
        'this.#inner.start(request);\n    this.#requestedIds.add(request.id);',
      ],
    ],
  },
  {
    id: 'one-strike-more',
    about: 'a subscriber that throws is kept for one more error',
    witness: 'test/scenarios/observers.test.ts',
    edits: [['if (strikes >= STRIKES)', 'if (strikes > STRIKES)']],
  },
  {
    id: 'context-stays',
    about: 'context that a plugin added to one request stays for the next',
    witness: 'test/scenarios/plugins.test.ts',
    edits: [['this.#contexts = [];', '']],
  },
  {
    id: 'refused-append-forgotten',
    about: 'the appends after an overtaken one are stored although it was rejected',
    witness: 'test/scenarios/overtaken.test.ts',
    edits: [
      [
        'return second ? carriedBy(first, [second, ...others]) : lost(first);',
        'return second ? { appends: rest, acts: [...lost(first).acts, ...storing(second, others.length > 2)] } : lost(first);',
      ],
    ],
  },
  {
    id: 'subscriber-stops-a-run',
    about: 'a subscriber that throws ends the run',
    witness: 'test/scenarios/observers.test.ts',
    edits: [['strikes += 1;', 'throw error;']],
  },
  {
    id: 'waiting-calls-from-the-chart',
    about: 'a run after one whose end the store lost starts without the calls that wait according to the log',
    witness: 'test/scenarios/whatWaits.test.ts',
    edits: [['if (!of?.waits) return context;', 'if (of !== undefined || !of?.waits) return context;']],
  },
  {
    id: 'queue-limit-of-the-chart',
    about: 'messages whose return the log does not contain do not count against the limit of the queue',
    witness: 'test/scenarios/whatWaits.test.ts',
    edits: [['queued: standing.queued - queue.length + queueLength', 'queued: standing.queued']],
  },
  {
    id: 'queue-limit-without-unstored-messages',
    about:
      'messages whose return is not stored do not count against the limit of the queue where they are not stored either',
    witness: 'test/scenarios/receipts.test.ts',
    edits: [['const unstored = this.#driver?.unstored ?? [];', 'const unstored: readonly NewEntry[] = [];']],
  },
  {
    id: 'lost-cost-counted',
    about: 'the tokens of a rejected append count against the limits',
    witness: 'test/simulation/regressions.test.ts',
    edits: [['if (spent) remaining =', 'if (spent && !spent) remaining =']],
  },
  {
    id: 'decision-of-a-rerun-not-used',
    about: 'the decision of a repeated call is not recorded as used if the run is interrupted after its result',
    witness: 'test/machines/closeCalls.test.ts',
    edits: [
      [
        'reruns.find(({ call, decision }) => decision && call.callId === callId);',
        'reruns.find(({ call, decision }) => !call && decision);',
      ],
    ],
  },
  {
    id: 'left-out-of-the-gate',
    about: 'a call that kept its turn after one that waits again counts as being replayed',
    witness: 'test/paths/run.states.test.ts',
    edits: [
      [
        'const over = new Set([output.callId, ...skipped.map(({ call }) => call.callId)]);',
        'const over = new Set([output.callId, ...skipped.slice(skipped.length).map(({ call }) => call.callId)]);',
      ],
    ],
  },
  {
    id: 'suspended-cycle-is-over',
    about: 'a run that waits for a call of an earlier cycle is not continued',
    witness: 'test/simulation/regressions.test.ts',
    edits: [
      ["if (cycle === 'suspended') return true;", ''],
      ['else if (record.late) delete record.late;', ''],
    ],
  },
  {
    id: 'second-decision-in-one-append',
    about: 'of two decisions in one append both are stored',
    witness: 'test/simulation/regressions.test.ts',
    edits: [
      [
        "(entry) => entry.type === 'decision' && entry.callId === callId && entry.suspension === suspension,\n    );",
        "(entry) => entry.type === 'decision' && entry.callId === '' && entry.suspension === suspension,\n    );",
      ],
    ],
  },
  {
    id: 'summary-parts-a-call',
    about: 'a summary may end between a call and its result',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [['while (cut > 0 && seqs[cut - 1] === seqs[cut]) cut -= 1;', '']],
  },
  {
    id: 'summary-takes-last-words',
    about: 'a summary contains the last reply of the model, with results that the model has not received',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [['let cut = Math.min(fits, most);', 'let cut = fits;']],
  },
  {
    id: 'summary-shown-early',
    about: 'the model receives a summary before it is durable',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [
      [
        "return { kind: 'summary', text: [redact(text), kept]",
        "around.transcript.push({ ...entries.at(-1), type: 'compaction', upToSeq, summary: text } as never);\nreturn { kind: 'summary', text: [redact(text), kept]",
      ],
    ],
  },
  {
    id: 'summary-streamed',
    about: 'a summary is streamed as if it were the text of the run',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [
      [
        'setTimer, random, live: () => undefined, diagnose })',
        'setTimer, random, live: (options as never as { live(): undefined }).live, diagnose })',
      ],
    ],
  },
  {
    id: 'long-summary',
    about: 'a summary that frees no room is still used',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [['text.length > most ? TOO_LONG : undefined', 'undefined']],
  },
  {
    id: 'media-type-of-the-agent',
    about: 'a message is judged by the agent’s own model, not by the one that its request names',
    witness: 'test/scenarios/files.test.ts',
    edits: [
      ["kind === 'steer' ? request.shownModel : request.modelNamed(choices.model)", 'request.modelNamed(undefined)'],
    ],
  },
  {
    id: 'last-message-lost',
    about: 'the last message of the user is summarized with the earlier ones',
    witness: 'test/scenarios/compaction.test.ts',
    edits: [["last = entry.seq > upToSeq ? '' : labelledText(entry.content);", "last = '';"]],
  },
  {
    id: 'forgets-what-may-run-again',
    about: 'an interrupted call is dropped after the store lost a resume',
    witness: 'test/simulation/regressions.test.ts',
    edits: [['...open, kept, reruns, queue', '...open, kept, reruns: [], queue']],
  },
  {
    id: 'runs-again-behind-a-lost-end',
    about: 'a call of a run whose end is lost runs again with a resume, although its result is written before',
    witness: 'test/scenarios/whatWaits.test.ts',
    edits: [["cycle === 'running' ? [] : open.reruns", "cycle === 'none' ? [] : open.reruns"]],
  },
  {
    id: 'lost-retry-left-open',
    about: 'a message leaves a call open whose retry lost its end',
    witness: 'test/scenarios/whatWaits.test.ts',
    edits: [
      ["logged(logState, isLogged, hostCommand.type !== 'resume.requested')", 'logged(logState, isLogged, false)'],
    ],
  },
  {
    id: 'retry-runs-twice',
    about: 'a call that a person retried, whose result is lost, runs again automatically',
    witness: 'test/scenarios/whatWaits.test.ts',
    edits: [['leavesAll || !logState.calls.get(call.callId)?.late', 'leavesAll || call']],
  },
  {
    id: 'queue-overfull-behind-a-resumption',
    about: 'a message counts as the start of a run, and not for the limit, although an earlier one resumes the cycle',
    witness: 'test/scenarios/receipts.test.ts',
    edits: [
      ['return { ...standing, resuming: true, queued: queued + 1 };', 'return { ...standing, queued: queued + 1 };'],
    ],
  },
  {
    id: 'queue-overfull-behind-a-starter',
    about: 'of two pending messages to a waiting cycle, the second counts as the start of a run and not for the limit',
    witness: 'test/machines/judgeAct.test.ts',
    edits: [["return { ...standing, status: 'active', undecided: [] };", 'return standing;']],
  },
  {
    id: 'told-conflict-though-applied',
    about: 'a decision whose arguments contain a secret is answered as a conflict with its stored form',
    witness: 'test/scenarios/decidedCalls.test.ts',
    edits: [['{ ...written.decision, suspension }', '{ ...(written && decision), suspension }']],
  },
  {
    id: 'cancel-waits-for-a-promotion',
    about: 'a cancel waits for the run of a message whose promotion it gave up',
    witness: 'test/scenarios/queues.test.ts',
    edits: [["if (place !== 'queued') await next.result;", 'await next.result;']],
  },
  {
    id: 'summary-of-a-summary',
    about: 'a summary is summarized again alone',
    witness: 'test/simulation/regressions.test.ts',
    edits: [['seqs[0] === summed ? 1 : 0', '0']],
  },
  {
    id: 'told-applied-behind-another',
    about: 'a decision is answered as applied, although an earlier one, assumed to be lost, was stored before it',
    witness: 'test/scenarios/decidedCalls.test.ts',
    edits: [
      [
        "stored === 'conflict' || (stored === 'duplicate' && !isOwn) ? stored",
        "stored === 'unknown' && isOwn ? stored",
      ],
    ],
  },
  {
    id: 'aborted-steer-joins',
    about: 'a steer with an aborted signal is part of the active run',
    witness: 'test/scenarios/queues.test.ts',
    edits: [["kind === 'steer' && !signal?.aborted ? this.current", "kind === 'steer' ? this.current"]],
  },
  {
    id: 'copy-unchecked',
    about: 'a copy of a conversation counts although it differs',
    witness: 'test/stores/copyConversations.test.ts',
    edits: [['await opened(this.#to, id, (copy) => compare(id, wanted, copy, hashes));', '']],
  },
  {
    id: 'copy-of-bytes-unchecked',
    about: 'a copy of a conversation counts although its bytes differ',
    witness: 'test/stores/copyConversations.test.ts',
    edits: [['if (!bytes || sha256(bytes) !== hash)', 'if (!bytes)']],
  },
  {
    id: 'copy-beside-its-remains',
    about: 'a sub-agent that an interrupted copy left is in the way of the next copy',
    witness: 'test/stores/copyConversations.test.ts',
    edits: [['if (parentId !== undefined) await this.#removeOld(id, parentId);', '']],
  },
  {
    id: 'fork-without-early-images',
    about: 'a fork names images of earlier messages that are not beside its log',
    witness: 'test/journals/travel.test.ts',
    edits: [
      ['messages.push({ ...message, content: await copied(message.content, copyBlob) });', 'messages.push(message);'],
    ],
  },
  {
    id: 'pruned-and-summed-up',
    about: 'pruned tokens still count when a summary is due',
    witness: 'test/scenarios/contextWindow.test.ts',
    edits: [
      [
        'const isDue = shareOf({ used: left, limit }) > compactAbove;',
        'const isDue = shareOf({ used: value.used, limit }) > compactAbove;',
      ],
    ],
  },
  {
    id: 'unpriced-calls-as-one',
    about: 'calls of a sub-agent without a price count as one',
    witness: 'test/scenarios/cost.test.ts',
    edits: [
      [
        'unpriced: unpriced + (call.costUsd === null ? made : 0),',
        'unpriced: unpriced + (call.costUsd === null ? 1 : 0),',
      ],
    ],
  },
  {
    id: 'steer-behind-its-cancel',
    about: 'a steer whose image is being stored starts a run after the cancel of the run that it should steer',
    witness: 'test/scenarios/imageOrder.test.ts',
    edits: [["(by === 'close' || (by === 'cancel' && !isFollowUp))", "by === 'close'"]],
  },
  {
    id: 'suspended-as-active',
    about: 'a message that arrives while a call waits follows the policy for an active run',
    witness: 'test/scenarios/messageTable.test.ts',
    edits: [
      [
        "return whileSuspended === 'followUp' ? 'followUp' : 'direct';",
        "return whileSuspended !== 'followUp' ? 'direct' : whileActive === 'steer' ? 'steer' : 'followUp';",
      ],
    ],
  },
  {
    id: 'cancel-waits-for-what-begins-next',
    about: 'a cancel resolves when the first append of the next run is stored',
    witness: 'test/scenarios/cancelOrders.test.ts',
    edits: [['this.#deadline.end();\n    this.#options.uncancelled?.();', 'this.#deadline.end();']],
  },
  {
    id: 'cancel-resolves-before-its-stop',
    about: 'a cancel of a run that another cancel already ends resolves at once',
    witness: 'test/scenarios/cancelOrders.test.ts',
    edits: [
      ['    await uncancelled;\n', ''],
      ['    if (cancel === this.#cancels) await this.#runtime.uncancelled();\n', ''],
    ],
  },
  {
    id: 'queue-overfull-behind-a-decision',
    about: 'a message is accepted as if a decision on its way had not been made',
    witness: 'test/scenarios/whatWaits.test.ts',
    edits: [['after = { ...after, undecided };', 'void undecided;']],
  },
  {
    id: 'cancel-waits-for-a-later-cancel',
    about: 'a cancel waits for the run that a later cancel ends',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [['if (cancel === this.#cancels) await', 'await']],
  },
  {
    id: 'report-waits-for-messages',
    about: 'the result of a run waits for the append of a message that arrived while its end was being stored',
    witness: 'test/scenarios/cancelOrders.test.ts',
    edits: [['if (this.#durableStop !== undefined) this.#reportDeadline.begin();', '']],
  },
  {
    id: 'lost-suspension-waits',
    about: 'a cycle waits whose suspension the store rejected together with the stop after it',
    witness: 'test/scenarios/cancelStore.test.ts',
    edits: [["{ guard: 'lostTheSuspension', target: 'idle.error'", "{ guard: 'lostTheSuspension', target: 'waiting'"]],
  },
  {
    id: 'report-deadline-stays',
    about: 'the time-out of a report remains after the stop is reported',
    witness: 'test/scenarios/cancelOrders.test.ts',
    edits: [['this.#isSuspension = false;\n    this.#reportDeadline.end();', 'this.#isSuspension = false;']],
  },
  {
    id: 'steps-continue-twice',
    about: 'later steps run twice if an append is stored that a cancel had overtaken',
    witness: 'test/machines/nextAppend.test.ts',
    edits: [["append.stage === 'awaited' ? [proceed] : []", '[proceed]']],
  },
  {
    id: 'given-up-twice',
    about: 'the charts receive the silence of the store about one append twice',
    witness: 'test/machines/nextAppend.test.ts',
    edits: [["stage === 'givenUp' && append.stage !== 'givenUp'", "stage === 'givenUp'"]],
  },
  {
    id: 'acts-on-their-way-unjudged',
    about: 'a message is judged as if the acts before it did not exist',
    witness: 'test/scenarios/imageOrder.test.ts',
    edits: [['after = standingAfter(after, outcome);', 'void standingAfter;']],
  },
  {
    id: 'withdrawn-not-replayed',
    about: 'a replay skips a message that was withdrawn before its run began',
    witness: 'test/journals/replay.test.ts',
    edits: [
      ['if (command.returned) return undefined;', 'if (command.returned || command.withdrawn) return undefined;'],
    ],
  },
  {
    id: 'promotion-not-given-up',
    about: 'a cancel of the run of a queued message does not give up the promotion of that message',
    witness: 'test/machines/actLife.test.ts',
    edits: [
      [
        "if (starter && starter.act.type !== 'promotion.requested') return 'onItsWay';",
        "if (starter) return 'onItsWay';",
      ],
    ],
  },
  {
    id: 'act-returned-after-it-was-taken',
    about: 'a cancel returns an act that the chart has taken',
    witness: 'test/machines/actLife.test.ts',
    edits: [
      ['taken: { durable: ', "taken: { return: 'answered', durable: "],
      ['isWaiting(pending) && JUDGED.has(', 'JUDGED.has('],
    ],
  },
  {
    id: 'image-overtaken',
    about: 'an act is sent before an act whose images are being stored',
    witness: 'test/machines/actLife.test.ts',
    edits: [
      [
        "acts.findIndex(({ stage }) => stage === 'storing' || stage === 'held')",
        "acts.findIndex(({ stage }) => stage === 'held')",
      ],
    ],
  },
  {
    id: 'cancelled-conversation-steers',
    about: 'a steer for a cancelled run counts as delivered to it',
    witness: 'test/machines/judgeAct.test.ts',
    edits: [
      [
        "case 'cancelling':\n      return 'queued';",
        "case 'cancelling':\n      return kind === 'steer' ? 'steered' : 'queued';",
      ],
    ],
  },
  {
    id: 'stop-shown-before-its-charts',
    about: 'subscribers receive the end of a run that the charts have not taken',
    witness: 'test/scenarios/agreement.test.ts',
    edits: [['if (this.#durableStop === undefined) this.#options.announce?.();', 'this.#options.announce?.();']],
  },
  {
    id: 'stop-shown-before-its-report',
    about: 'a subscriber that closes at the end of a run leaves the run without its result',
    witness: 'test/scenarios/deadStore.test.ts',
    edits: [
      [
        'for (const end of this.#requests.takeEnds()) this.#journal.start(end);\n    this.#announce();',
        'this.#announce();\n    for (const end of this.#requests.takeEnds()) this.#journal.start(end);',
      ],
    ],
  },
  {
    id: 'overtaken-once',
    about: 'the appends of a cancel after its time limit are awaited again',
    witness: 'test/scenarios/cancelOrders.test.ts',
    edits: [['this.#deadline.onAppend();', '']],
  },
  {
    id: 'unbegun-message-not-returned',
    about: 'the receipt of a message whose run never starts stays open',
    witness: 'test/scenarios/cancelOrders.test.ts',
    edits: [['if (handle.since === undefined) void this.#returns.returnUnbegun(output);', '']],
  },
  {
    id: 'cancel-leaves-the-cycle-waiting',
    about: 'a cancel of a resume that has not started leaves the call waiting',
    witness: 'test/scenarios/cancelOrders.test.ts',
    edits: [["if (this.#runtime.status === 'waiting') await this.#runtime.cancel().catch(() => undefined);", '']],
  },
  {
    id: 'message-forgotten-before-it-is-stored',
    about: 'a message that steers an ending run is new again before it is stored',
    witness: 'test/scenarios/repeatedMessages.test.ts',
    edits: [['if (!commands.isIdle) await commands.allAnswered();', '']],
  },
  {
    id: 'repeated-request-forgotten',
    about: 'a repeated request acts again after 63 others',
    witness: 'test/conversation/served.test.ts',
    edits: [['const KEPT = 256;', 'const KEPT = 64;']],
  },
  {
    id: 'history-names-foreign-blobs',
    about: 'the copy of an earlier history names blobs of the log that it was copied from',
    witness: 'test/conversation/served.test.ts',
    edits: [
      ['messages.push({ ...message, content: await copied(message.content, copyBlob) });', 'messages.push(message);'],
    ],
  },
  {
    id: 'tools-not-copied',
    about: "the tools of a message change with the host's list",
    witness: 'test/conversation/sendOptions.test.ts',
    edits: [['tools: tools && [...tools],', 'tools,']],
  },
];
