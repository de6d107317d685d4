/** The context of a conversation after the store refused an append. */
import { describe, expect, it } from 'vitest';
import { continueRun, dropLost } from '../../machines/conversation/context.ts';
import { freshCounters } from '../../machines/counters.ts';
import { chartCases, conversationMachine, nextState } from '../../machines/index.ts';

type ArgsOfDropLost = Parameters<typeof dropLost>[0];

const approved = (callId: string) => ({ callId, suspension: 1, decision: { callId, action: 'approve' as const } });
const retry = (callId: string) => ({ call: { callId, name: 'write' }, suspension: 0 });
const message = (messageId: string) => ({ messageId, kind: 'followUp' as const, content: [] });

/** The facts of the context for each id, and the entry that made each durable. */
const IDS = ['a', 'b'] as const;
const context = {
  open: { suspended: [], kept: [], reruns: [], decisions: IDS.map(approved) },
  retries: IDS.map(retry),
  queue: IDS.map(message),
  counters: freshCounters,
};
const entries = IDS.flatMap((id) => [
  { runId: null, type: 'decision', callId: id, suspension: 1, decision: approved(id).decision },
  { runId: null, type: 'call-settled', callId: id, how: { retry: true } },
  { runId: null, type: 'message-queued', ...message(id) },
]);
const names = (held: Pick<typeof context, 'open' | 'retries' | 'queue'>): string[] => [
  ...held.open.decisions.map(({ callId }) => `decision ${callId}`),
  ...held.retries.map(({ call }) => `call-settled ${call.callId}`),
  ...held.queue.map(({ messageId }) => `message-queued ${messageId}`),
];
const heldAfter = (lost: readonly object[]): string[] => {
  const event = { type: 'append.failed', lost, error: { code: 'store', message: 'full' } };
  return names({ ...context, ...(dropLost({ context, event } as unknown as ArgsOfDropLost) as object) });
};

describe('after a failed append', () => {
  it.each(
    entries.map((entry) => [`${entry.type} ${'callId' in entry ? entry.callId : entry.messageId}`, entry] as const),
  )('a conversation drops what the lost entry contained, and keeps everything else: %s', (name, entry) => {
    expect(heldAfter([entry])).toEqual(names(context).filter((each) => each !== name));
  });

  it('a conversation drops all of it if every entry is lost, and nothing if other entries are lost', () => {
    expect(heldAfter(entries)).toEqual([]);
    const others = IDS.map((id) => ({ runId: 'r', type: 'tool-started', callId: id, messageId: id }));
    expect(heldAfter(others)).toEqual(names(context));
  });
});

describe('after the store refused a suspension and the stop of its cycle', () => {
  it('a message starts a run without the calls of that cycle that kept their turn', () => {
    const [fresh] = chartCases.conversation.inputs;
    const call = (callId: string) => ({ callId, name: 'write', gated: true, readOnly: false, fingerprint: callId });
    const none = { suspended: [], kept: [], reruns: [], decisions: [] };
    const open = { ...none, suspended: [{ call: call('a'), suspension: 1 }], kept: [{ call: call('b'), behind: 'a' }] };
    const next = (state: object | undefined, event: object) =>
      nextState(conversationMachine, state as never, event as never);
    let { state } = next(undefined, { input: { ...(fresh as object), open, runId: 'q', waiting: true } });
    ({ state } = next(state, { type: 'cancel.requested' }));
    const lost = [
      { runId: 'q', type: 'run-suspended', waiting: ['a'] },
      { runId: 'q', type: 'run-stop', reason: 'interrupted', cause: 'cancelled' },
    ];
    ({ state } = next(state, { type: 'append.failed', lost, error: { code: 'store', message: 'full' } }));
    expect(state.value).toEqual({ idle: 'error' });
    const of = { runId: 'q', counters: freshCounters, waits: { ...none, queue: [] } };
    const { effects } = next(state, { type: 'message.sent', messageId: 'm', content: [], kind: 'direct', of });
    expect(effects).toMatchObject([{ type: 'spawn', id: 'run', input: { suspended: [], kept: [] } }]);
  });
});

describe('after a run was suspended and its call is decided already', () => {
  const settled = { end: { termination: 'Suspended' }, durable: true, counters: freshCounters, ...context.open };
  const event = { type: 'xstate.done.actor.run', output: settled };
  const continued = (trigger: object) =>
    continueRun({ context: { ...context, runId: 'r', trigger }, event } as unknown as Parameters<
      typeof continueRun
    >[0]);

  it('the next run resumes its cycle', () => {
    expect(continued({ kind: 'message' }).trigger).toEqual({ kind: 'resume', of: 'r' });
  });

  it('the next run opens no cycle if the run only retried calls', () => {
    expect(continued({ kind: 'retry', of: 'q' }).trigger).toEqual({ kind: 'retry', of: 'q' });
  });
});
