/** Sub-agents of a conversation that an engine holds, when the conversation is left and opened again in one attempt. */
import { describe, expect, it } from 'vitest';
import { HeldSubAgents } from '../../src/restate/chain/heldSubAgents.ts';
import { flush } from '../support/virtualClock.ts';

function held() {
  const read: string[] = [];
  const attempt = {
    append: () => undefined,
    blobsOf: () => undefined,
    startTimer: () => undefined,
    readLog: async (id?: string) => {
      read.push(id ?? '');
      return { entries: [], version: 1 };
    },
  };
  const subAgents = new HeldSubAgents({
    attempt,
    now: () => 0,
    isLive: () => true,
    mayWait: () => false,
    tell: () => undefined,
  });
  return { subAgents, read };
}
const refused = (opening: Promise<unknown>): Promise<string> =>
  opening.then(
    () => 'opened',
    (error: Error) => error.message,
  );
const never = () => new Promise<never>(() => undefined);

describe('a conversation that was left', () => {
  it('opens no sub-agent any more: neither one that waits for its log, nor one that is requested while it is being left', async () => {
    const { subAgents, read } = held();
    const below = subAgents.belowNow();
    const waiting = refused(below('first', never));
    const leaving = subAgents.leave();
    const late = refused(below('second', never));
    expect([await waiting, await late]).toEqual(['the attempt is over', 'the attempt is over']);
    await leaving;
    expect([subAgents.next, subAgents.isQuiet, read]).toEqual([undefined, true, []]);
  });

  it('and that is open again opens its own sub-agents alone', async () => {
    const { subAgents } = held();
    const before = subAgents.belowNow();
    await subAgents.leave();
    const after = subAgents.belowNow();
    void refused(after('new', never));
    expect(await refused(before('old', never))).toBe('the attempt is over');
    await flush();
    expect(subAgents.next).toBe('new');
    await subAgents.leave();
    expect(subAgents.next).toBeUndefined();
  });
});
