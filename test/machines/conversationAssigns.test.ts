/** The context of a conversation after the store refused an append. */
import { describe, expect, it } from 'vitest';
import { dropLost } from '../../machines/conversation/context.ts';
import { freshCounters } from '../../machines/counters.ts';

type Given = Parameters<typeof dropLost>[0];

const approved = (callId: string) => ({ callId, suspension: 1, decision: { callId, action: 'approve' as const } });
const retry = (callId: string) => ({ call: { callId, name: 'write' }, suspension: 0 });
const message = (messageId: string) => ({ messageId, kind: 'followUp' as const, content: [] });

/** What the context holds for each id, and the entry that made it durable. */
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
  return names({ ...context, ...(dropLost({ context, event } as unknown as Given) as object) });
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
