/**
 * The status of a conversation and its log agree for every reader. Each story reads both after every microtask and
 * inside every notification, on a store that answers at once and on one that takes a turn.
 */
import { describe, expect, it } from 'vitest';
import type { Conversation, LogEntry } from '../../src/index.ts';
import { type Bench, bench } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, deaf, type Reply } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';

const both = [{ synchronous: true }, { synchronous: false }];
const TURNS = 60;
const MICROTASKS = 40;

type Phase = 'under way' | 'waiting' | 'over';

/** The status of the last run in the log. */
function phaseOf(log: readonly LogEntry[]): Phase {
  const last = log.filter(({ type }) => /^run-(started|resumed|suspended|stop)$/.test(type)).at(-1)?.type;
  return last === 'run-stop' ? 'over' : last === 'run-suspended' ? 'waiting' : 'under way';
}
const phaseOfStatus = ({ status }: Conversation): Phase =>
  status === 'idle' || status === 'error' ? 'over' : status === 'waiting' ? 'waiting' : 'under way';

/** Collects every disagreement until the process is idle. */
async function disagreements({ conversation, clock }: Bench): Promise<string[]> {
  const found = new Set<string>();
  const look = (where: string): void => {
    const [status, log] = [phaseOfStatus(conversation), phaseOf(conversation.log())];
    if (status !== log) found.add(`${where}: the status is ${conversation.status}, the run of the log is ${log}`);
  };
  const watchers = [
    conversation.log$(conversation.log().length).subscribe(({ type }) => look(`at ${type}`)),
    conversation.view$.subscribe(() => look('at a view')),
  ];
  for (let turn = 0; turn < TURNS; turn++) {
    for (let microtask = 0; microtask < MICROTASKS; microtask++) {
      look('between two microtasks');
      await undefined;
    }
    await clock.advance(1);
  }
  for (const watcher of watchers) watcher.unsubscribe();
  return [...found];
}

type How = { synchronous: boolean };

/** A conversation whose first message was sent. `act` runs inside the notification of that message. */
async function sent(
  how: How,
  replies: readonly Reply[],
  act?: (on: Conversation) => void,
  policies = {},
): Promise<Bench> {
  const around = { tools: [echoTool('ask').tool], plugins: [asks().plugin] };
  const on = await bench({ replies, store: troubledStore(how), policies, ...around });
  const { conversation } = on;
  const begun = new Promise<void>((resolve) => {
    conversation.log$().subscribe(({ type }) => {
      if (type === 'user-message') act?.(conversation);
      if (type === 'checkpoint') resolve();
    });
  });
  conversation.send('hi');
  await begun;
  return on;
}

describe.each(both)('status and log agree for every reader at every moment (%o)', (how) => {
  it('while a run replies and ends', async () => {
    expect(await disagreements(await sent(how, ['one']))).toEqual([]);
  });

  it('while a steer extends a run', async () => {
    const on = await sent(how, ['one', 'two'], (conversation) => void conversation.steer('and this'));
    expect(await disagreements(on)).toEqual([]);
  });

  it('while a run is cancelled', async () => {
    const on = await sent(how, [deaf()], (conversation) => void conversation.cancel());
    expect(await disagreements(on)).toEqual([]);
  });

  it('while a run ends and leaves a followUp in the queue', async () => {
    const later = (conversation: Conversation): void => void conversation.followUp('later');
    const on = await sent(how, ['one'], later, { promoteFollowUpOn: [] });
    expect(await disagreements(on)).toEqual([]);
    expect(on.conversation.queue).toHaveLength(1);
  });

  it('while a run is suspended, and while its cycle is cancelled', async () => {
    const on = await sent(how, [[call('c1', 'ask', { m: 'a' })]]);
    expect(await disagreements(on)).toEqual([]);
    expect(on.conversation.status).toBe('waiting');
    await on.clock.until(on.conversation.cancel());
    expect(await disagreements(on)).toEqual([]);
    expect(on.conversation.status).toBe('idle');
  });
});
