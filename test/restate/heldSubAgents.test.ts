/** Sub-agents of a conversation that an engine holds, as the attempt of their parent has them. */
import { describe, expect, it } from 'vitest';
import { createAgent, type LogEntry, subAgents } from '../../src/index.ts';
import type { Live } from '../../src/live.ts';
import type { SubAgentNews, Waiting, WaitingAct } from '../../src/restate/chain/engineAttempt.ts';
import { HeldSubAgents } from '../../src/restate/chain/heldSubAgents.ts';
import type { AgentProfile, ChildRequest, OpenedChild } from '../../src/runtime/subAgentPort.ts';
import { CallIds } from '../../src/subAgents/subAgentRecords.ts';
import { SubAgentRegistry } from '../../src/subAgents/subAgentRegistry.ts';
import { flush } from '../support/virtualClock.ts';

const model = { id: 'silent', stream: () => ({}) as never };
const { profile: parent } = createAgent({ model, tools: [subAgents()] }) as unknown as { profile: AgentProfile };

const requestOf = (id: string, asked: readonly string[] = []): ChildRequest => ({
  id,
  parent: { conversationId: 'parent', callId: 'p' },
  above: () => ({ messageId: 'm' }),
  spent: () => ({ counted: { tokens: 7, costUsd: 0, unpriced: 0 }, uncounted: [] }),
  asked,
  closed: () => {},
});

/** The sub-agents of one conversation share their call ids. */
function profileOf(): AgentProfile {
  const callIds = new CallIds();
  return { ...parent, makeSubAgents: (owner) => new SubAgentRegistry({ ...owner, callIds, spawns: new Map() }) };
}

function held({ hasBudget = false } = {}) {
  const read: string[] = [];
  const profile = profileOf();
  const receivers = new Map<string, (signal: Live) => void>();
  const sent: { id: string; waiting: Waiting }[] = [];
  const heldAgents = new HeldSubAgents({
    attempt: {
      readLog: async (id?: string) => {
        read.push(id ?? '');
        return { entries: [], version: 1 };
      },
      tell: (id, waiting) => void sent.push({ id, waiting }),
    },
    followLive: (id, receive) => {
      receivers.set(id, receive);
      return () => void receivers.delete(id);
    },
    log: [{ type: 'conversation', cwd: '/home', owner: 'somebody' } as unknown as LogEntry],
    logState: () => undefined,
    prefix: () => 'opened',
    hasBudget,
    tell: () => undefined,
  });
  const open = async (id: string, asked?: readonly string[]): Promise<OpenedChild> => {
    const opening = heldAgents.belowNow()(requestOf(id, asked), profile);
    await heldAgents.read(id);
    return opening;
  };
  const sendAll = (): void => heldAgents.ask(heldAgents.asked);
  const take = (id: string, ...news: SubAgentNews[]): void => {
    for (const each of news) heldAgents.take(id, each);
  };
  return { heldAgents, read, sent, open, sendAll, take, receivers };
}

const refused = (opening: Promise<unknown>): Promise<string> =>
  opening.then(
    () => 'opened',
    (error: Error) => error.message,
  );

const entry = (seq: number, more: object): LogEntry =>
  ({ seq, at: 1, conversationId: 'child', runId: 'run_r', ...more }) as unknown as LogEntry;
const called = (seq: number, callId: string) =>
  entry(seq, { type: 'agent-output', item: { type: 'tool-call', callId, name: 'ask', args: {} } });
const suspended = (seq: number, callId: string) =>
  entry(seq, { type: 'tool-suspended', callId, suspension: 1, reason: 'approval' });
const entries = (...all: LogEntry[]): SubAgentNews => ({ kind: 'entries', entries: all });

describe('a conversation that was left', () => {
  it('opens no sub-agent any more: neither one that waits for its log, nor one that is requested while it is being left', async () => {
    const { heldAgents, read } = held();
    const below = heldAgents.belowNow();
    const waiting = refused(below(requestOf('first'), parent));
    heldAgents.leave();
    const late = refused(below(requestOf('second'), parent));
    expect([await waiting, await late]).toEqual(['the attempt is over', 'the attempt is over']);
    expect([heldAgents.next, read]).toEqual([undefined, []]);
  });

  it('and that is open again opens its own sub-agents alone', async () => {
    const { heldAgents } = held();
    const before = heldAgents.belowNow();
    heldAgents.leave();
    const after = heldAgents.belowNow();
    void refused(after(requestOf('new'), parent));
    expect(await refused(before(requestOf('old'), parent))).toBe('the attempt is over');
    await flush();
    expect(heldAgents.next).toBe('new');
    heldAgents.leave();
    expect(heldAgents.next).toBeUndefined();
  });

  it('asks its sub-agents nothing any more, and does not change the ids of what the next opening asks', async () => {
    const idOfCancel = async (isAskedBefore: boolean): Promise<unknown> => {
      const { heldAgents, sent, open, sendAll } = held();
      const { conversation: before } = await open('child');
      void before.send('task');
      sendAll();
      heldAgents.leave();
      const { conversation } = await open('child');
      if (isAskedBefore) void before.cancel();
      expect(heldAgents.asked).toEqual([]);
      void conversation.cancel();
      sendAll();
      return (sent.at(-1) as { waiting: WaitingAct }).waiting.to;
    };
    expect(await idOfCancel(true)).toBe(await idOfCancel(false));
  });

  it('and that is open again sends a task that was not sent, and waits for one that was', async () => {
    const { heldAgents, sent, open, sendAll, take, read } = held();
    const [first, second] = [await open('first'), await open('second')];
    void first.conversation.send('one');
    sendAll();
    void second.conversation.send('two');
    heldAgents.leave();
    const [again, other] = [await open('first'), await open('second')];
    expect(read).toEqual(['first', 'second']);
    expect([again.conversation.status, other.conversation.status]).toEqual(['active', 'idle']);
    const { result } = again.conversation.resume();
    void other.conversation.send('two');
    sendAll();
    expect(sent.map(({ id }) => id)).toEqual(['first', 'second']);
    const { to } = (sent[0] as { waiting: WaitingAct }).waiting;
    take('first', { kind: 'answer', to, answer: { value: {} } }, { kind: 'rest', end: { termination: 'NaturalEnd' } });
    expect(await result).toEqual({ termination: 'NaturalEnd' });
  });
});

describe('a sub-agent in another place', () => {
  it('works until it rests after the answer, not before', async () => {
    const { sent, open, sendAll, take } = held();
    const { conversation } = await open('child');
    const { result } = conversation.send('task');
    sendAll();
    take('child', { kind: 'rest' });
    expect(conversation.status).toBe('active');
    const { to } = (sent[0] as { waiting: WaitingAct }).waiting;
    const error = { code: 'agent_busy', message: 'busy' };
    take('child', { kind: 'answer', to, answer: { error } }, { kind: 'rest' });
    expect(conversation.status).toBe('idle');
    expect(await result).toEqual({ termination: 'Error', error });
    const again = conversation.resume();
    sendAll();
    const { to: resumed } = (sent[1] as { waiting: WaitingAct }).waiting;
    const end = { termination: 'NaturalEnd' } as const;
    take('child', { kind: 'answer', to: resumed, answer: { value: {} } }, { kind: 'rest', end });
    expect(await again.result).toEqual(end);
  });

  it('receives the usage of the others once at a time, and at the end the rest of it', async () => {
    const { heldAgents, sent, open, sendAll, take } = held({ hasBudget: true });
    const [first] = [await open('first'), await open('second')];
    void first.conversation.send('task');
    sendAll();
    const usage = { inputTokens: 1, outputTokens: 1 };
    const spend = (...places: number[]): void => {
      for (const seq of places)
        take(
          'second',
          entries(entry(seq, { type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd: null })),
        );
    };
    const answer = (): void => {
      const { to } = (sent.at(-1) as { waiting: WaitingAct }).waiting;
      take('first', { kind: 'answer', to, answer: { value: {} } });
    };
    spend(0, 1);
    expect(heldAgents.asked).toHaveLength(1);
    sendAll();
    spend(2, 3, 4);
    expect(heldAgents.asked).toEqual([]);
    answer();
    expect(heldAgents.asked).toHaveLength(1);
    sendAll();
    answer();
    expect(heldAgents.asked).toEqual([]);
    spend(5);
    expect(heldAgents.asked).toHaveLength(1);
  });

  it('receives again the usage of the others after its conversation was left', async () => {
    const { heldAgents, open, sendAll, take } = held({ hasBudget: true });
    const [first] = [await open('first'), await open('second')];
    void first.conversation.send('task');
    sendAll();
    const usage = { inputTokens: 1, outputTokens: 1 };
    const spend = (seq: number): void =>
      take(
        'second',
        entries(entry(seq, { type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd: null })),
      );
    spend(0);
    heldAgents.leave();
    await open('first');
    await open('second');
    spend(1);
    expect(heldAgents.asked).toHaveLength(1);
  });

  it('has another name for a call whose id another sub-agent has, and decisions reach it under its own', async () => {
    const { sent, open, sendAll, take } = held();
    const [first, second] = [await open('first'), await open('second')];
    take('first', entries(called(0, 'c'), suspended(1, 'c')));
    take('second', entries(called(0, 'c'), suspended(1, 'c')));
    expect(first.conversation.pending.map(({ callId }) => callId)).toEqual(['c']);
    void second.conversation.decide({ callId: 'c~2', suspension: 1, action: 'approve' });
    sendAll();
    expect(sent.at(-1)).toMatchObject({
      id: 'second',
      waiting: { act: { type: 'decide', decision: { callId: 'c' } } },
    });
    void second.conversation.settle('c~2', { retry: true });
    sendAll();
    expect(sent.at(-1)).toMatchObject({ id: 'second', waiting: { act: { type: 'settle', callId: 'c' } } });
    const decision = { callId: 'c', suspension: 1, action: 'approve' };
    take('second', entries(entry(2, { type: 'decision', callId: 'c', suspension: 1, decision })));
    const { decisions } = second.runtime.logState.calls.get('c~2') ?? {};
    expect(decisions?.get(1)).toEqual({ ...decision, callId: 'c~2' });
  });

  it('answers each of two equal decisions', async () => {
    const { sent, open, sendAll, take } = held();
    const { conversation } = await open('child');
    const decision = { callId: 'c', suspension: 1, action: 'approve' } as const;
    const receipts = [conversation.decide(decision), conversation.decide(decision)];
    sendAll();
    for (const [index, { waiting }] of sent.entries()) {
      const { to } = waiting as WaitingAct;
      take('child', { kind: 'answer', to, answer: { value: { receipt: ['applied', 'duplicate'][index] ?? '' } } });
    }
    expect(await Promise.all(receipts)).toEqual(['applied', 'duplicate']);
  });

  it('receives the ids of the other calls, also those of a sub-agent that is open again', async () => {
    const { heldAgents, sent, open, sendAll, take } = held();
    const [first] = [await open('first'), await open('second')];
    take('first', entries(called(0, 'c')));
    take('second', entries(called(0, 'd')));
    const idsBeside = (): readonly string[] | undefined =>
      (sent.at(-1) as { waiting: WaitingAct }).waiting.place?.taken;
    await first.conversation.close();
    void (await open('second')).conversation.send('task');
    sendAll();
    expect(idsBeside()).toEqual([]);
    heldAgents.leave();
    await open('first');
    void (await open('third')).conversation.send('task');
    sendAll();
    expect(idsBeside()).toEqual(['c', 'd']);
  });

  it('receives the place of its parent, and how much of its log the parent has', async () => {
    const { sent, open, sendAll, take } = held();
    const { conversation } = await open('child');
    take('child', entries(called(0, 'c')));
    void conversation.send('task');
    sendAll();
    const { act, place } = (sent[0] as { waiting: WaitingAct }).waiting;
    expect(act).toMatchObject({ type: 'send', options: { messageId: 'child-task' } });
    expect(place).toMatchObject({ upTo: 1, owner: 'somebody', cwd: '/home', parent: { callId: 'p' } });
  });

  it.each(['c~2', 'c~3', 'c~11'])('keeps the name of a call that a person was asked about: %s', async (name) => {
    const { open, take } = held();
    const { conversation } = await open('child', ['c~', 'd~2', 'cc~2', name]);
    take('child', entries(called(0, 'c'), suspended(1, 'c')));
    expect(conversation.pending.map(({ callId }) => callId)).toEqual([name]);
  });

  it('shows its live signals in the conversation of its parent, until the parent is left or needs it no more', async () => {
    const { heldAgents, open, receivers } = held();
    const { conversation, runtime } = await open('child');
    const signals: Live[] = [];
    runtime.live.signals$.subscribe((signal) => signals.push(signal));
    receivers.get('child')?.({ type: 'text-delta', runId: 'run_r', text: 'so' });
    expect(signals).toEqual([{ type: 'text-delta', runId: 'run_r', text: 'so' }]);
    await conversation.close();
    expect(receivers.size).toBe(0);
    await open('child');
    expect(receivers.size).toBe(1);
    heldAgents.leave();
    expect(receivers.size).toBe(0);
  });

  it('takes each entry once, and in order', async () => {
    const { open, take } = held();
    const { runtime } = await open('child');
    const heard: number[] = [];
    runtime.log.listen(({ seq }) => void heard.push(seq));
    take(
      'child',
      entries(called(0, 'a'), called(1, 'b')),
      entries(called(1, 'b'), called(2, 'c')),
      entries(called(4, 'e')),
    );
    expect(heard).toEqual([0, 1, 2]);
  });

  it.each([
    [true, 1, { counted: { tokens: 7 } }],
    [false, 0, undefined],
  ])('learns what the others have spent where something limits it: %s', async (hasBudget, times, spent) => {
    const { heldAgents, sent, open, sendAll, take } = held({ hasBudget });
    const [first] = [await open('first'), await open('second')];
    void first.conversation.send('task');
    sendAll();
    const usage = { inputTokens: 1, outputTokens: 1 };
    take(
      'second',
      entries(entry(0, { type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd: null })),
    );
    expect(heldAgents.asked).toHaveLength(times);
    sendAll();
    const [waiting] = sent.slice(-1).map((each) => each.waiting as { place: { spent?: object } });
    if (spent) expect(waiting?.place.spent).toMatchObject(spent);
    else expect(waiting?.place.spent).toBeUndefined();
  });
});
