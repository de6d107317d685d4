/**
 * The folds of a log for many short logs: state, messages, repairs, receipts, and accepted entries. Invariant: the logs
 * are drawn from one seed, in likely and unlikely orders, and do not depend on the code that reads them.
 */
import {
  addUsage,
  canonical,
  createTranscript,
  type Decision,
  defaultPolicies,
  dueReplays,
  entryOfMessage,
  fingerprintOf,
  goesOn,
  isCutOff,
  isUnfinished,
  type Json,
  judgeDecision,
  type LogEntry,
  type Message,
  modelMessages,
  type NewEntry,
  openCalls,
  outputInLog,
  reconcile,
  repairs,
  rerunOf,
  restored,
  type StoredPart,
  shareOf,
  subAgentUsageOf,
  usageOf,
} from '../../machines/internal.ts';
import { responseEventOf } from '../../machines/responseState.machine.ts';
import { prunableOf, sizeOfTranscript } from '../../machines/transcript/transcript.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { type Clause, drawn, type Fold, json, knowledgeOf } from './drawnResults.ts';
import { hold } from './invariants.ts';

const text = (words: string): StoredPart[] => [{ type: 'text', text: words }];
const image: StoredPart = { type: 'image', mediaType: 'image/png', data: 'aGk=' };
/** Large enough to prune three of them. */
const LARGE = 'x'.repeat(90_000);

function drawnUsage(draw: Chance) {
  const [inputTokens, outputTokens] = [draw.below(900), draw.below(90)];
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens: draw.below(9),
    cacheWriteTokens: draw.below(9),
    reasoningTokens: draw.below(9),
  };
}
const decisionOf = (draw: Chance, callId: string): Decision =>
  ({
    callId,
    ...draw.one<object>([
      { action: 'approve' },
      { action: 'deny' },
      { action: 'deny', reason: 'no' },
      { action: 'deny', reason: 'approve' },
      { action: 'edit', args: { path: 'b' } },
      { action: 'edit', args: draw.one(['approve', 'no', 'c']) },
      { action: 'answer', payload: false },
      { action: 'answer', payload: { path: 'b' } },
      { action: 'answer', payload: draw.one<Json>(['no', 'approve', null]) },
      { action: 'answer', payload: { b: 1, a: [null, 'x'] } },
    ]),
  }) as Decision;

const contentOf = (draw: Chance): StoredPart[] =>
  draw.one<StoredPart[]>([text('done'), text('done'), [], [...text('see'), image]]);

/** Returns an entry about one call. */
function ofCall(draw: Chance): object {
  const callId = draw.one(['a', 'b', 'c']);
  const suspension = 1 + draw.below(2);
  return draw.one<() => object>([
    () => ({ type: 'agent-output', item: { type: 'tool-call', callId, name: 'write', args: { path: callId } } }),
    () => ({
      type: 'agent-output',
      item: { type: 'tool-call', callId, name: 'read', args: null, argsText: '{"path":' },
    }),
    () => ({ type: 'tool-allowed', callId, by: 'rule' }),
    () => ({
      type: 'tool-started',
      callId,
      idempotencyKey: `c/${callId}/${suspension - 1}`,
      ...(draw.odds(0.3) && { args: { path: 'z' } }),
    }),
    () => ({ type: 'tool-started', callId, idempotencyKey: `c/${callId}/0` }),
    () => ({
      type: 'tool-suspended',
      callId,
      suspension,
      reason: 'permission',
      ...(draw.odds(0.4) && { payload: { q: 1 } }),
      ...(draw.odds(0.3) && { args: { path: 'y' } }),
    }),
    () => ({ type: 'decision', callId, suspension, decision: decisionOf(draw, callId) }),
    () => ({ type: 'decision-consumed', callId, suspension }),
    () => ({ type: 'tool-result', callId, outcome: 'succeeded', content: contentOf(draw) }),
    () => ({
      type: 'tool-result',
      callId,
      outcome: 'failed',
      code: draw.one(['denied', 'error']),
      content: contentOf(draw),
    }),
    () => ({ type: 'tool-result', callId, outcome: draw.one(['cancelled', 'unknown']), content: text('gone') }),
    () => ({
      type: 'tool-result',
      callId,
      outcome: 'cancelled',
      code: draw.one(['cancelled', 'skipped']),
      content: text('cut'),
    }),
    () => ({
      type: 'call-settled',
      callId,
      how: draw.one<object>([{ ran: { ok: true } }, { didNotRun: true }, { retry: true }]),
    }),
    () => ({
      type: 'diagnostic',
      code: draw.one(['decision_expired', 'decision_expired', 'late_result']),
      detail: draw.one<Json>([{ callId }, { callId }, null, [], 'x', {}]),
    }),
  ])();
}

/** Returns an entry about a queued message, or about the end of its run. */
function ofQueue(draw: Chance): object {
  const messageId = draw.one(['m', 'n']);
  return draw.one<object>([
    { type: 'message-queued', messageId, kind: 'followUp', content: text('later') },
    { type: 'message-returned', messageId, why: 'host' },
    { type: 'run-stop', reason: 'interrupted' },
    { type: 'checkpoint', boundary: draw.one(['UserMessage', 'RunFinished']) },
    { type: 'agent-output', item: { type: 'assistant', text: 'words' } },
  ]);
}

/** Returns an entry about the conversation, a run or the window. */
function ofConversation(draw: Chance): object {
  const messageId = draw.one(['m', 'n', 'o']);
  const kind = draw.one(['steer', 'followUp']);
  return draw.one<() => object>([
    () => ({ type: 'conversation', schema: 1, cwd: '/w', createdAt: 7 }),
    () => ({ type: 'run-started' }),
    () => ({ type: 'run-resumed', of: 'r1' }),
    () => ({ type: 'run-suspended', waiting: ['a'] }),
    () => ({
      type: 'run-stop',
      reason: draw.one(['completed', 'interrupted', 'error', 'of another day']),
      ...(draw.odds(0.5) && { cause: 'crash' }),
    }),
    () => ({ type: 'user-message', messageId, kind: draw.one(['direct', 'followUp', 'steer']), content: text('hi') }),
    () => ({ type: 'user-message', messageId, kind: 'direct', content: [...text('look'), image] }),
    () => ({ type: 'message-queued', messageId, kind, content: text('later') }),
    () => ({ type: 'message-returned', messageId, why: 'host' }),
    () => ({ type: 'agent-output', item: { type: 'assistant', text: draw.one(['words', '', ' ']) } }),
    () => ({ type: 'agent-output', item: { type: 'reasoning', text: 'hm' } }),
    () => ({
      type: 'model-reply',
      turn: 1,
      model: 'm',
      finish: 'stop',
      usage: drawnUsage(draw),
      costUsd: draw.one([0, 0.25, null]),
    }),
    () => ({ type: 'continuation', text: 'Go on.', why: draw.one(['pause', 'resume']) }),
    () => ({ type: 'compaction', upToSeq: draw.below(9), summary: 'before' }),
    () => ({ type: 'state-changed', writes: { mode: draw.below(3), [messageId]: true } }),
    () => ({ type: 'context-warning', used: 9, limit: 10 }),
    () => ({ type: 'checkpoint', boundary: draw.one(['UserMessage', 'ToolResultsCommitted', 'RunFinished']) }),
    () => ({ type: 'extension', name: 'runchart.context-eased', value: { used: 1, limit: 10 } }),
    () => ({
      type: 'extension',
      name: 'runchart.pruned',
      value: draw.one<Json>([{ callIds: ['a', 'b'] }, { callIds: ['a', 1] }, { callIds: 1 }, null, ['a'], 'a']),
    }),
    () => ({ type: 'extension', name: 'runchart.sub-agent-usage', value: spentValue(draw) }),
    () => ({ type: 'extension', name: 'other', value: { callIds: ['a'] } }),
    () => ({ type: 'extension', name: 'other', value: spentValue(draw) }),
    () => ({ type: 'sub-agent', callId: 'a', child: 'k', phase: draw.one(['started', 'ended']) }),
  ])();
}

function spentValue(draw: Chance): Json {
  const upTo = draw.one<Json>([3, -1, 'x']);
  const usage = draw.one<Json>([drawnUsage(draw), null, { inputTokens: -4, outputTokens: 'y' }]);
  return draw.one<Json>([
    { callId: 'a', conversationId: 'k', upTo, usage, costUsd: draw.one<Json>([0.5, null, -1]) },
    { callId: 1 },
    { callId: 'a' },
    null,
    [1],
  ]);
}

const LARGE_EVERY = 8;

const isLarge = (seed: number): boolean => seed % LARGE_EVERY === 0;
/** Returns calls with results that the model has received and that are pruned, some of them twice. */
const roundWithResults = (draw: Chance): object[] => [
  { type: 'user-message', messageId: 'n', kind: 'direct', content: text('and') },
  ...['a', 'b', 'c', 'd'].map((callId) => ({
    type: 'agent-output',
    item: { type: 'tool-call', callId, name: 'write', args: {} },
  })),
  { type: 'model-reply', turn: 1, model: 'm', finish: 'tool-calls', usage: drawnUsage(draw), costUsd: 0.5 },
  ...['a', 'b', 'c'].map((callId) => ({ type: 'tool-result', callId, outcome: 'succeeded', content: [] })),
  { type: 'agent-output', item: { type: 'assistant', text: 'I see' } },
  {
    type: 'model-reply',
    turn: 2,
    model: 'm',
    finish: 'stop',
    usage: { ...drawnUsage(draw), inputTokens: draw.one([900, 90_000]) },
    costUsd: 0.5,
  },
  ...(draw.odds(0.4) ? [{ type: 'compaction', upToSeq: draw.below(9), summary: 'before' }] : []),
  { type: 'extension', name: 'runchart.pruned', value: { callIds: draw.one([['a'], ['b', 'a', 'd'], ['c', 'z']]) } },
];

/** Returns the entries of one call in order. Some entries are missing, as after a crash. */
function lifeOf(draw: Chance, callId: string): object[] {
  const call = {
    type: 'agent-output',
    item: { type: 'tool-call', callId, name: draw.one(['write', 'read']), args: {} },
  };
  const decided = (suspension: number) => ({
    type: 'decision',
    callId,
    suspension,
    decision: decisionOf(draw, callId),
  });
  const runs = (suspension: number): object[] => [
    {
      type: 'tool-started',
      callId,
      idempotencyKey: `c/${callId}/${suspension}`,
      ...(draw.odds(0.2) && { args: { path: 'z' } }),
    },
    { type: 'decision-consumed', callId, suspension },
  ];
  const result = (outcome: string, code?: string): object => ({
    type: 'tool-result',
    callId,
    outcome,
    ...(code && { code }),
    content: contentOf(draw),
  });
  const suspends = (suspension: number): object[] => [
    ...(draw.odds(0.3) ? [decided(suspension + draw.below(2))] : []),
    {
      type: 'tool-suspended',
      callId,
      suspension,
      reason: 'permission',
      ...(draw.odds(0.3) && { args: { path: 'y' } }),
    },
    decided(suspension),
  ];
  const late = { type: 'diagnostic', code: 'late_result', detail: { callId } };
  const life = draw.one<() => object[]>([
    () => [...runs(0), result('succeeded')],
    () => [...suspends(1), ...runs(1), result('succeeded')],
    () => [...suspends(1), result('failed', 'denied')],
    () => [...suspends(1), ...runs(1), ...suspends(2), ...runs(2), result('failed', 'error')],
    () => [
      ...suspends(1),
      ...runs(1),
      result('unknown'),
      { type: 'call-settled', callId, how: { retry: true } },
      ...suspends(2),
      ...runs(2),
      result('succeeded'),
    ],
    () => [...runs(0), result('unknown'), { type: 'call-settled', callId, how: { retry: true } }, ...runs(0)],
    () => [
      ...runs(0),
      ...draw.one([[decided(2), result('unknown')], [result('unknown')]]),
      { type: 'call-settled', callId, how: draw.one<object>([{ didNotRun: true }, { ran: 7 }]) },
    ],
    () => [decided(1), late, decided(2), ...runs(0), result('cancelled', 'cancelled')],
  ])();
  return [call, ...life.slice(0, 1 + draw.below(life.length)).filter(() => draw.odds(0.9))];
}

/** Returns one or more runs with concurrent calls. */
function livesOf(draw: Chance): object[] {
  const lives = ['a', 'b', 'c'].slice(0, 1 + draw.below(3)).map((callId) => lifeOf(draw, callId));
  const waiting = { type: 'message-queued', kind: 'followUp', content: text('later') };
  const made: object[] = [
    ...(draw.odds(0.3) ? ['m', 'n'].map((messageId) => ({ ...waiting, messageId })) : []),
    { type: 'run-started' },
    { type: 'user-message', messageId: 'm', kind: 'direct', content: text('hi') },
  ];
  while (lives.some(({ length }) => length > 0)) {
    const next = lives[draw.below(lives.length)]?.shift();
    if (next) made.push(next);
    if (draw.odds(0.08))
      made.push({ type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage: drawnUsage(draw), costUsd: 0.5 });
    if (draw.odds(0.1))
      made.push(
        ...draw.one([
          [
            { type: 'run-suspended', waiting: ['a'] },
            { type: 'run-resumed', of: 'r1' },
          ],
          [ofConversation(draw)],
        ]),
      );
  }
  const end = draw.one<object[]>([
    [],
    [{ type: 'run-stop', reason: draw.one(['completed', 'interrupted']), ...(draw.odds(0.4) && { cause: 'crash' }) }],
    [{ type: 'run-suspended', waiting: ['a'] }],
    [
      { type: 'run-resumed', of: 'r1' },
      { type: 'continuation', text: 'Go on.', why: 'resume' },
    ],
  ]);
  return [...made, ...end];
}

/**
 * Returns the log of a seed. A third each has the calls' entries in order, the same with random entries after them, or
 * random entries only.
 */
function logOf(seed: number): LogEntry[] {
  const draw = chance(seed);
  if (seed % 3 === 0) return stampedAs(seed, draw, livesOf(draw));
  const likely = draw.odds(0.5);
  const made: object[] = likely
    ? [
        { type: 'run-started' },
        { type: 'user-message', messageId: 'm', kind: 'direct', content: text('hi') },
        ...['a', 'b', 'c'].slice(0, 1 + draw.below(3)).map((callId) => ({
          type: 'agent-output',
          item: { type: 'tool-call', callId, name: 'write', args: { path: callId } },
        })),
        { type: 'model-reply', turn: 1, model: 'm', finish: 'tool-calls', usage: drawnUsage(draw), costUsd: 0.5 },
      ]
    : [];
  const length = 6 + draw.below(16);
  if (isLarge(seed)) made.push(...roundWithResults(draw));
  while (made.length < length) made.push(draw.odds(likely ? 0.75 : 0.5) ? ofCall(draw) : ofConversation(draw));
  return stampedAs(seed, draw, made);
}

function stampedAs(seed: number, draw: Chance, made: readonly object[]): LogEntry[] {
  let runId = 'r1';
  return made.map((entry, seq) => {
    const { type } = entry as { type: string };
    if (type === 'run-started' && draw.odds(0.7)) runId = draw.one(['r1', 'r2', 'run_m', 'run_n']);
    // Only a few logs contain prunable results, because large results take time.
    const content = type === 'tool-result' && isLarge(seed) && { content: text(LARGE) };
    return {
      seq,
      at: 1_000 + seq * 10 + draw.below(40) - 20,
      conversationId: 'c',
      runId: draw.odds(0.05) ? null : runId,
      ...entry,
      ...content,
    } as LogEntry;
  });
}

const settings = { conversationId: 'c', policies: defaultPolicies, phases: {} as never, models: ['m'] };

const isRead = (name: string): boolean => name === 'read';
const FOLDS: Record<string, Fold<readonly LogEntry[]>> = {
  knowledge: (log) => [knowledgeOf([]), knowledgeOf(log)],
  messages: (log) => modelMessages(log),
  transcript: (log) => {
    const shown = createTranscript();
    return log.map((entry) => {
      shown.push(entry);
      return [shown.messages().length, sizeOfTranscript(shown), shown.endsWithAssistant(), prunableOf(shown)];
    });
  },
  repeated: (log) => log.map((entry) => 'messageId' in entry && entryOfMessage(log, entry.messageId)?.seq),
  ended: (log) => log.map(({ runId }, index) => outputInLog(`${runId}`, log.slice(index))),
  restart: (log) => {
    const logState = knowledgeOf(log);
    const repaired = repairs(logState, isRead);
    const rest = knowledgeOf([...log, ...stamped(log, repaired)]);
    const start = restored(rest, settings);
    return [
      repaired,
      [isUnfinished(logState), isCutOff(logState), goesOn(logState)],
      openCalls(logState),
      start,
      dueReplays(start.open),
      [isUnfinished(rest), isCutOff(rest), goesOn(rest)],
      [...rest.calls.values()].map(rerunOf),
    ];
  },
  receipts: (log, draw) => {
    const logState = knowledgeOf(log);
    return ['a', 'b', 'c', 'd'].flatMap((callId) =>
      [undefined, 1, 2, 3].map((suspension) =>
        judgeDecision(logState.calls.get(callId), { ...decisionOf(draw, callId), ...(suspension && { suspension }) }),
      ),
    );
  },
  sequel: (log, draw) => {
    const at = draw.below(log.length);
    const before = log.slice(0, at);
    const goOn: NewEntry = { runId: 'r9', type: 'continuation', text: 'Go on.', why: 'resume' };
    const own = Array.from({ length: 4 }, () => ({
      runId: draw.one(['r1', 'r9']),
      ...draw.one([ofCall, ofQueue])(draw),
    }));
    const resumed = { ...goOn, type: 'run-resumed', of: 'r1' };
    const tails = [log.slice(at), [...log.slice(at), goOn], [resumed, goOn], own, [resumed, ...own, goOn]];
    return tails.flatMap((tail) =>
      [true, false].map((spokeLast) => reconcile(knowledgeOf(before), tail as NewEntry[], spokeLast)),
    );
  },
  responses: (log) => log.map(responseEventOf),
  frozen: (log) => modelMessages(log).map((message) => Object.isFrozen(message)),
  spent: (log) => log.map((entry) => [usageOf(entry), subAgentUsageOf(entry), addUsage(usageOf(entry) ?? none, none)]),
  fingerprints: (log) =>
    log.map((entry) => [
      canonical(entry as unknown as Json).length,
      fingerprintOf(entry.type, { seq: entry.seq, a: [entry.at] }),
      shareOf({ used: entry.seq, limit: entry.at % 3 }),
    ]),
};
const none = {
  usage: { inputTokens: 1, outputTokens: 2, cachedInputTokens: 3, cacheWriteTokens: 4, reasoningTokens: 5 },
  costUsd: 0.5,
};

const stamped = (log: readonly LogEntry[], entries: readonly NewEntry[]): LogEntry[] =>
  entries.map((entry, index) => ({ seq: log.length + index, at: 9_000, conversationId: 'c', ...entry }) as LogEntry);

function holdPairs(messages: readonly Message[]): void {
  let due: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') hold(due.shift() === message.callId, `a result of ${message.callId} stands elsewhere`);
    else hold(due.length === 0, `no result of ${due} directly after its call`);
    if (message.role === 'assistant') due = message.toolCalls.map(({ callId }) => callId);
  }
  hold(due.length === 0, `no result of ${due} at the end`);
}

const logClauses: readonly Clause<readonly LogEntry[]>[] = [
  {
    says: 'semantics 11: each call of an assistant message has exactly one result, directly after it, in call order',
    holds: (log) => holdPairs(modelMessages(log)),
  },
  {
    says: 'semantics 16: reading the messages at any moment changes no later messages',
    holds: (log) => {
      const looked = createTranscript();
      for (const [index, entry] of log.entries()) {
        looked.push(entry);
        hold(json(looked.messages()) === json(modelMessages(log.slice(0, index + 1))), `after entry ${index}`);
      }
    },
  },
  {
    says: 'semantics 16: messages that were read never change later',
    holds: (log) => {
      const transcript = createTranscript();
      const sizes = (shown: readonly Message[]): string => shown.map(({ content }) => content.length).join();
      const calls = (shown: readonly Message[]): string =>
        shown.map((message) => (message.role === 'assistant' ? message.toolCalls.length : 0)).join();
      const looks = log.map((entry) => {
        transcript.push(entry);
        const shown = transcript.messages();
        return { shown, was: sizes(shown) + calls(shown) };
      });
      for (const { shown, was } of looks) hold(sizes(shown) + calls(shown) === was, 'a message grew');
    },
  },
  {
    says: 'semantics 6: a log that a restart has repaired is at rest, and needs no second repair',
    holds: (log) => {
      const rest = [...log, ...stamped(log, repairs(knowledgeOf(log), isRead))];
      hold(repairs(knowledgeOf(rest), isRead).length === 0, 'repaired twice');
      hold(knowledgeOf(rest).cycle !== 'running', 'a run without an end');
    },
  },
  {
    says: 'semantics 6: no call runs again automatically unless it is declared idempotent or settled so',
    holds: (log) => {
      const logState = knowledgeOf([...log, ...stamped(log, repairs(knowledgeOf(log), isRead))]);
      for (const { call } of openCalls(logState).reruns) hold(isRead(call.name), `${call.callId} runs again`);
    },
  },
];

export const logs = drawn('LOGS', logOf, FOLDS, logClauses);
