/** The entries that may follow in a log after the loss of any entries before them. */
import { describe, expect, it } from 'vitest';
import { applyEntry, emptyLogState, type LogEntry, type NewEntry, reconcile } from '../../machines/internal.ts';

const content = [{ type: 'text' as const, text: 'x' }];
const begun = (runId: string): NewEntry => ({ runId, type: 'run-started' });
const resumed = (runId: string, of: string): NewEntry => ({ runId, type: 'run-resumed', of });
const stop = (runId: string): NewEntry => ({ runId, type: 'run-stop', reason: 'completed' });
const waits = (runId: string): NewEntry => ({ runId, type: 'run-suspended', waiting: ['c'] });
const over = (runId: string): NewEntry => ({ runId, type: 'checkpoint', boundary: 'RunFinished' });
const made = (callId: string): NewEntry => ({
  runId: 'r',
  type: 'agent-output',
  item: { type: 'tool-call', callId, name: 'echo', args: {} },
});
const started = (callId: string): NewEntry => ({ runId: 'r', type: 'tool-started', callId, idempotencyKey: callId });
const held = (callId: string): NewEntry => ({ runId: 'r', type: 'tool-suspended', callId, suspension: 1, reason: '' });
const result = (callId: string): NewEntry => ({
  runId: 'r',
  type: 'tool-result',
  callId,
  outcome: 'succeeded',
  content,
});
const unknown = (callId: string): NewEntry => ({
  runId: 'r',
  type: 'tool-result',
  callId,
  outcome: 'unknown',
  content,
});
const settled = (callId: string): NewEntry => ({ runId: 'r', type: 'call-settled', callId, how: { retry: true } });
const decided = (callId: string, suspension: number): NewEntry => ({
  runId: 'r',
  type: 'decision',
  callId,
  suspension,
  decision: { callId, action: 'approve' },
});
const queued = (messageId: string): NewEntry => ({
  runId: 'r',
  type: 'message-queued',
  messageId,
  kind: 'steer',
  content,
});
const returned = (messageId: string): NewEntry => ({ runId: 'r', type: 'message-returned', messageId, why: 'host' });

/** The remaining `entries` after this log, as `type subject`. */
function accepted(log: readonly NewEntry[], entries: readonly NewEntry[], modelSpokeLast = false): string[] {
  const logState = emptyLogState();
  for (const [seq, entry] of log.entries())
    applyEntry(logState, { seq, at: 0, conversationId: 'c', ...entry } as LogEntry);
  return reconcile(logState, entries, modelSpokeLast).map((entry) => {
    const subject = 'callId' in entry ? entry.callId : 'messageId' in entry ? entry.messageId : entry.runId;
    return `${entry.type} ${entry.type === 'agent-output' ? '' : subject}`.trim();
  });
}

describe('the order of entries', () => {
  it.each<[string, NewEntry[], NewEntry[], string[]]>([
    ['entries without a rule', [], [made('c'), over('r')], ['agent-output', 'checkpoint r']],
    [
      'a checkpoint after the other entries of its step',
      [begun('r')],
      [over('r'), made('c')],
      ['agent-output', 'checkpoint r'],
    ],
    [
      'the last of several checkpoints',
      [begun('r')],
      [over('q'), made('c'), stop('r'), over('r')],
      ['agent-output', 'run-stop r', 'checkpoint r'],
    ],
    ['the end of the run', [begun('r')], [stop('r'), over('r')], ['run-stop r', 'checkpoint r']],
    ['a suspension', [begun('r')], [waits('r'), over('r')], ['run-suspended r', 'checkpoint r']],
    ['the stop of a cycle that waits', [begun('r'), waits('r')], [stop('r')], ['run-stop r']],
    ['a run after a stop', [begun('r'), stop('r')], [begun('s')], ['run-started s']],
    ['a resumption of a waiting cycle', [begun('r'), waits('r')], [resumed('s', 'r')], ['run-resumed s']],
    ['a result of a call', [begun('r'), made('c')], [result('c')], ['tool-result c']],
    ['a call and its result at once', [begun('r')], [made('c'), result('c')], ['agent-output', 'tool-result c']],
    ['the settlement of an unknown outcome', [begun('r'), made('c'), unknown('c')], [settled('c')], ['call-settled c']],
    [
      'decisions for several calls and suspensions',
      [begun('r'), made('c'), held('c'), made('d'), held('d')],
      [decided('c', 1), decided('d', 1), decided('c', 2)],
      ['decision c', 'decision d', 'decision c'],
    ],
    ['the return of a queued message', [queued('m')], [returned('m')], ['message-returned m']],
    [
      'the return of a message that the same append queues',
      [],
      [queued('m'), returned('m')],
      ['message-queued m', 'message-returned m'],
    ],
  ])('%s is accepted', (_, log, entries, expected) => {
    expect(accepted(log, entries)).toEqual(expected);
  });

  it.each<[string, NewEntry[], NewEntry[]]>([
    ['a lost start, after the result', [begun('r'), made('c'), result('c')], [started('c')]],
    ['a lost suspension, after the result', [begun('r'), made('c'), result('c')], [held('c')]],
    ['a second stop, with its checkpoint', [begun('r'), stop('r')], [stop('r'), over('r')]],
    ['the stop of a run that never began', [begun('r'), stop('r')], [stop('s'), over('s')]],
    ['the stop of another run', [begun('r')], [stop('s')]],
    ['a second suspension of a waiting cycle', [begun('r'), waits('r')], [waits('r')]],
    ['a second result', [begun('r'), made('c'), result('c')], [result('c')]],
    ['a result of a call that does not exist', [begun('r')], [result('c')]],
    ['a second settlement of one outcome', [begun('r'), made('c'), unknown('c'), settled('c')], [settled('c')]],
    ['a settlement of a call with an outcome', [begun('r'), made('c'), result('c')], [settled('c')]],
    ['a second decision for one suspension', [begun('r'), made('c'), held('c'), decided('c', 1)], [decided('c', 1)]],
    ['the return of a message that was not queued', [], [returned('m')]],
    ['a second return of a message', [queued('m'), returned('m')], [returned('m')]],
  ])('%s is left out', (_, log, entries) => {
    expect(accepted(log, entries)).toEqual([]);
  });

  it('a resumption tells the model to continue if its own text comes last and no call waits', () => {
    const goOn: NewEntry = { runId: 's', type: 'continuation', text: 'Go on.', why: 'resume' };
    const reply: NewEntry = { runId: 'r', type: 'agent-output', item: { type: 'assistant', text: 'half' } };
    const next = [resumed('s', 'r'), goOn];
    const expected = ['run-resumed s', 'continuation s'];
    expect(accepted([begun('r'), reply, stop('r')], next, true)).toEqual(expected);
    expect(accepted([begun('r'), stop('r')], next, false)).toEqual(['run-resumed s']);
    expect(accepted([begun('r'), made('c'), held('c'), waits('r')], next, true)).toEqual(['run-resumed s']);
    // The text is in the same append.
    expect(accepted([begun('r')], [reply, stop('r'), ...next], false).slice(2)).toEqual(expected);
  });

  it('of two decisions in one append for one suspension the first is accepted', () => {
    const log = [begun('r'), made('c'), held('c')];
    expect(accepted(log, [decided('c', 1), decided('c', 1)])).toEqual(['decision c']);
  });

  it('a second result is accepted if the host wants the call run again', () => {
    const retry: NewEntry = { runId: 'r', type: 'call-settled', callId: 'c', how: { retry: true } };
    expect(accepted([begun('r'), made('c'), unknown('c'), retry], [result('c'), result('c')])).toEqual([
      'tool-result c',
    ]);
  });

  it.each([begun('s'), resumed('s', 'r')])('a run after a run that lost its end writes that end first: %o', (next) => {
    const log = [begun('r'), ...['a', 'b', 'c'].map(made), started('a'), held('b')];
    const before = ['tool-result a', 'tool-result c', 'run-stop r'];
    expect(accepted(log, [next, result('b')])).toEqual([...before, `${next.type} s`, 'tool-result b']);
  });

  it('a rewind of a cycle that waits writes the stop of that cycle first, if the log has none', () => {
    const rewound: NewEntry = { runId: null, type: 'rewound', toSeq: 0 };
    expect(accepted([begun('r'), made('c'), held('c'), waits('r')], [rewound])).toEqual(['run-stop r', 'rewound null']);
  });

  it('a new request closes a waiting cycle, and its calls continue to wait', () => {
    expect(accepted([begun('r'), made('c'), held('c'), waits('r')], [begun('s')])).toEqual([
      'run-stop r',
      'run-started s',
    ]);
  });
});
