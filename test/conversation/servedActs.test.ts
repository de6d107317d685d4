/** Acts of other processes on a conversation that this one holds, with a store in which an act or its answer fails. */
import { finalize, Subject } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { serveActs } from '../../src/conversation/served/remoteActs.ts';
import { type LogEntry, type LogStore, memoryStore } from '../../src/index.ts';
import type { Act, ActAnswer, EffectOfAct, LogHandle } from '../../src/stores/logStore.ts';
import { bench, entry } from '../support/agentBench.ts';
import { gateTool } from '../support/scenarioTools.ts';
import { call, type Reply } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { flush } from '../support/virtualClock.ts';

/** A conversation that serves acts. `fails`: the acts whose next answer cannot be stored. */
async function served({
  replies = [],
  fails = [],
  store = memoryStore(),
}: {
  replies?: readonly Reply[];
  fails?: string[];
  store?: LogStore;
} = {}) {
  const gate = gateTool();
  const { conversation } = await bench({ replies, store, tools: [gate.tool] });
  onTestFinished(() => conversation.close());
  const acts$ = new Subject<Act>();
  const answers: ActAnswer[] = [];
  const effects = new Map<string, EffectOfAct>();
  const waiting: (() => void)[] = [];
  const shared: unknown[] = [];
  const handle: LogHandle = {
    async *read() {},
    append: async () => {},
    close: async () => {},
    acts$,
    shareLive: (live$) => void shared.push(live$),
    expectEffect: (actId, effect) => void effects.set(actId, effect),
    async answerAct(actId, answer) {
      const at = fails.indexOf(actId);
      if (at >= 0) fails.splice(at, 1);
      if (at >= 0) throw new Error('connection lost');
      answers.push(answer);
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
  serveActs(conversation, handle);
  /** Resolves with the answer to the act. */
  const ask = async (act: Act): Promise<ActAnswer | undefined> => {
    const answered = new Promise<void>((resolve) => void waiting.push(resolve));
    acts$.next(act);
    await answered;
    return answers.at(-1);
  };
  return { conversation, gate, acts$, answers, effects, shared, ask };
}

describe('an act that was carried out', () => {
  it('is not reported as failed if its answer cannot be stored', async () => {
    const { conversation, ask } = await served({ fails: ['a'] });
    expect(await ask({ actId: 'a', type: 'rename', title: 'New' })).toEqual({
      error: { code: 'store', message: 'the act was carried out, but its answer could not be stored' },
    });
    expect(conversation.log().at(-1)).toMatchObject({ title: 'New' });
  });

  it('has no answer if none can be stored, and the next act has one', async () => {
    const { conversation, acts$, ask } = await served({ fails: ['a', 'a'] });
    acts$.next({ actId: 'a', type: 'rename', title: 'New' });
    await entry(conversation, 'renamed');
    expect(await ask({ actId: 'b', type: 'overview' })).toMatchObject({ value: { entries: 2 } });
  });
});

const value = (answer: ActAnswer | undefined): unknown => (answer && 'value' in answer ? answer.value : answer);

describe('an act', () => {
  it('of an unknown type is malformed, and an unexpected error does not leave the process', async () => {
    const { conversation, ask } = await served();
    vi.spyOn(conversation, 'rename').mockRejectedValue(new TypeError('a secret'));
    const malformed = { code: 'malformed', message: 'expected an act that this version knows: update runchart' };
    expect(await ask({ actId: 'a', type: 'constructor' })).toEqual({ error: malformed });
    expect(await ask({ actId: 'b' })).toEqual({ error: malformed });
    const internal = { code: 'internal', message: 'the act failed in the process that holds the conversation' };
    expect(await ask({ actId: 'c', type: 'rename', title: 'New' })).toEqual({ error: internal });
  });

  it('that is repeated under its request is done once, and has its first answer with the present length', async () => {
    const { conversation, ask } = await served();
    const act = { type: 'rename', title: 'New', request: 'r' };
    expect(value(await ask({ actId: 'a', ...act }))).toEqual({ entries: 2 });
    expect(value(await ask({ actId: 'b', type: 'rename', title: 'Other' }))).toEqual({ entries: 3 });
    expect(value(await ask({ actId: 'c', ...act }))).toEqual({ entries: 3 });
    expect(conversation.log()).toHaveLength(3);
  });

  it('does not wait for another one', async () => {
    const { conversation, acts$, ask } = await served();
    vi.spyOn(conversation, 'rename').mockReturnValue(new Promise(() => undefined));
    acts$.next({ actId: 'a', type: 'rename', title: 'New' });
    expect(value(await ask({ actId: 'b', type: 'overview' }))).toMatchObject({ overview: { status: 'idle' } });
  });
});

describe('the act', () => {
  it('send has the id of its message, or else that of the act, and expects the entry of that message', async () => {
    const { conversation, ask, effects } = await served({ replies: ['one', 'two'] });
    const first = value(await ask({ actId: 'a', type: 'send', content: 'hi' })) as { runId: string };
    expect(first).toMatchObject({ messageId: 'a' });
    expect(conversation.log().find(({ type }) => type === 'user-message')).toMatchObject({ messageId: 'a' });
    await entry(conversation, 'run-stop');
    const second = await ask({ actId: 'b', type: 'send', content: 'hi', options: { messageId: 'm', by: 'ada' } });
    expect(value(second)).toMatchObject({ messageId: 'm' });
    const mine = await entry(conversation, 'user-message', ({ messageId }) => messageId === 'm');
    expect(mine).toMatchObject({ by: 'ada' });
    const effect = effects.get('b');
    if (effect) expect(effect(mine)).toMatchObject({ messageId: 'm', entries: mine.seq + 1 });
    expect(
      conversation
        .log()
        .map((each) => effect?.(each))
        .filter(Boolean).length,
    ).toBeLessThan(2);
  });

  it('send of a steer is answered when it is queued, and a refused send with an error', async () => {
    const { conversation, gate, ask, acts$, answers } = await served({ replies: [[call('g', 'gate')], 'done'] });
    conversation.send('hi');
    await gate.begun('g');
    const steer = { type: 'send', content: 'and', options: { kind: 'steer' } };
    expect(value(await ask({ actId: 'a', ...steer }))).toMatchObject({ messageId: 'a' });
    expect(conversation.queue).toMatchObject([{ messageId: 'a', kind: 'steer' }]);
    expect(await ask({ actId: 'b', type: 'send', content: 'x' })).toMatchObject({ error: { code: 'agent_busy' } });
    expect(await ask({ actId: 'c', type: 'send', content: [] })).toMatchObject({ error: { code: 'configuration' } });
    acts$.next({ actId: 'd', type: 'close' });
    await conversation.close();
    expect(answers).toHaveLength(3);
  });

  it('send is answered when its message is stored, before its run ends, and names the entry of no other message', async () => {
    const store = troubledStore();
    const { conversation, gate, ask, effects } = await served({ store, replies: [[call('g', 'gate')], 'done'] });
    const answer = await ask({ actId: 'a', type: 'send', content: 'hi' });
    expect(value(answer)).toMatchObject({ messageId: 'a' });
    const mine = await entry(conversation, 'user-message');
    expect(effects.get('a')?.(mine)).toMatchObject({ messageId: 'a', entries: mine.seq + 1 });
    expect(effects.get('a')?.({ ...mine, messageId: 'b' })).toBeUndefined();
    expect(effects.get('a')?.({ ...mine, type: 'message-queued' } as LogEntry)).toMatchObject({ messageId: 'a' });
    expect(effects.get('a')?.({ ...mine, type: 'renamed' } as never as LogEntry)).toBeUndefined();
    await gate.begun('g');
    expect(conversation.status).toBe('active');
    const resumed = await ask({ actId: 'c', type: 'resume' });
    expect(value(resumed)).toMatchObject({ runId: mine.runId });
    gate.release('g');
    await entry(conversation, 'run-stop');
  });

  it('send of a message that cannot be stored has the error of its run', async () => {
    const store = troubledStore();
    const { ask } = await served({ store, replies: ['done'] });
    store.trouble((entries) => (entries.some(({ type }) => type === 'user-message') ? 'failed' : 'stored'));
    const answer = await ask({ actId: 'a', type: 'send', content: 'hi' });
    expect(answer).toEqual({ error: { code: 'store', message: 'the disk is full' } });
  });

  it('resume is answered when its run has begun, before that ends', async () => {
    const store = troubledStore();
    const replies = [[call('g', 'gate')], [call('h', 'gate')], 'done'];
    const { conversation, gate, ask, effects } = await served({ store, replies });
    const run = conversation.send('hi');
    await gate.begun('g');
    await run.cancel();
    const { runId } = value(await ask({ actId: 'a', type: 'resume' })) as { runId: string };
    const begun = await entry(conversation, 'run-resumed');
    expect(effects.get('a')?.(begun)).toMatchObject({ runId, entries: begun.seq + 1 });
    expect(effects.get('a')?.({ ...begun, runId: 'other' })).toBeUndefined();
    await gate.begun('h');
    expect(conversation.status).toBe('active');
    gate.release('h');
    await entry(conversation, 'run-stop', (each) => each.runId === runId);
  });

  it.each(['user-message', 'run-resumed'] as const)(
    'has no answer before its %s is stored, and follows the log no longer',
    async (type) => {
      const store = troubledStore();
      const replies = [[call('g', 'gate')], 'done', 'more'];
      const { conversation, gate, acts$, ask, answers } = await served({ store, replies });
      if (type === 'run-resumed') {
        const run = conversation.send('hi');
        await gate.begun('g');
        await run.cancel();
      }
      let land = (): void => {};
      const landed = new Promise<void>((resolve) => {
        land = resolve;
      });
      store.trouble((entries) => (entries.some((each) => each.type === type) ? { after: landed } : 'stored'));
      let following = 0;
      const { log$ } = conversation;
      vi.spyOn(conversation, 'log$').mockImplementation((from) => {
        following += 1;
        return log$.call(conversation, from).pipe(finalize(() => (following -= 1)));
      });
      const act = type === 'run-resumed' ? { type: 'resume' } : { type: 'send', content: 'hi' };
      acts$.next({ actId: 'a', ...act });
      await ask({ actId: 'b', type: 'overview' });
      await flush();
      expect([answers.length, following]).toEqual([1, 1]);
      land();
      while (answers.length < 2) await flush();
      expect(value(answers[1])).toMatchObject({ runId: expect.any(String) });
      expect(following).toBe(0);
    },
  );

  it('decide expects the decision itself, by the same person, and nothing else', async () => {
    const { conversation, ask, effects } = await served();
    const decision = { callId: 'x', action: 'approve', by: 'ada' };
    expect(value(await ask({ actId: 'a', type: 'decide', decision }))).toMatchObject({ receipt: 'unknown' });
    const made = {
      ...conversation.log()[0],
      type: 'decision',
      callId: 'x',
      suspension: 1,
      seq: 7,
    } as never as LogEntry;
    const stored = (change: object): unknown =>
      effects.get('a')?.({ ...made, decision: { ...decision, ...change } } as LogEntry);
    expect(stored({})).toEqual({ receipt: 'unknown', entries: 8 });
    expect([stored({ by: 'bob' }), stored({ by: undefined }), stored({ action: 'deny' })]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(effects.get('a')?.({ ...made, callId: 'y', decision } as never as LogEntry)).toBeUndefined();
    for (const wrong of [null, 5, {}])
      expect(await ask({ actId: 'b', type: 'decide', decision: wrong })).toMatchObject({
        error: { code: 'invalid_decision' },
      });
  });

  it('settle expects the settlement of its call', async () => {
    const { ask, effects } = await served();
    expect(value(await ask({ actId: 'a', type: 'settle', callId: 'x', how: { retry: true } }))).toMatchObject({
      receipt: 'unknown',
    });
    const settled = (callId: string) =>
      effects.get('a')?.({ type: 'call-settled', callId, seq: 3 } as never as LogEntry);
    expect([settled('x'), settled('y')]).toEqual([{ receipt: 'applied', entries: 4 }, undefined]);
  });

  it('cancel ends the run that it names, and expects the stop of that one', async () => {
    const { conversation, gate, ask, effects } = await served({ replies: [[call('g', 'gate')], 'done'] });
    const run = conversation.send('hi');
    await gate.begun('g');
    expect(value(await ask({ actId: 'a', type: 'cancel', runId: 'other' }))).toMatchObject({ status: 'active' });
    expect(value(await ask({ actId: 'b', type: 'cancel', runId: run.id }))).toMatchObject({ status: 'idle' });
    const stop = await entry(conversation, 'run-stop');
    expect([effects.get('a')?.(stop), effects.get('b')?.(stop)]).toEqual([
      undefined,
      { status: 'idle', entries: stop.seq + 1 },
    ]);
    expect(value(await ask({ actId: 'c', type: 'cancel' }))).toMatchObject({ status: 'idle' });
    expect(effects.get('c')?.(stop)).toMatchObject({ status: 'idle' });
  });

  it('resume has the id that it names, and one id resumes once', async () => {
    const { conversation, gate, ask } = await served({ replies: [[call('g', 'gate')], 'done', 'more'] });
    const run = conversation.send('hi');
    await gate.begun('g');
    await run.cancel();
    const resume = { type: 'resume', resumptionId: 'again' };
    const first = value(await ask({ actId: 'a', ...resume })) as { runId: string };
    await entry(conversation, 'run-stop', ({ runId }) => runId === first.runId);
    const second = value(await ask({ actId: 'b', ...resume })) as { runId: string };
    expect(second.runId).toBe(first.runId);
    expect(conversation.log().filter(({ type }) => type === 'run-resumed')).toHaveLength(1);
    const result = value(await ask({ actId: 'c', type: 'result', runId: first.runId }));
    expect(result).toMatchObject({ result: { text: 'done', termination: 'NaturalEnd' } });
  });

  it('result is that of a run that is over, and an error for any other', async () => {
    const { conversation, gate, ask } = await served({ replies: [[call('g', 'gate')], 'done'] });
    const run = conversation.send('hi');
    await gate.begun('g');
    const unknown = await ask({ actId: 'a', type: 'result', runId: 'other' });
    expect(unknown).toEqual({ error: { code: 'not_found', message: 'there is no such run' } });
    const early = await ask({ actId: 'b', type: 'result', runId: run.id });
    expect(early).toEqual({ error: { code: 'agent_busy', message: 'the run is not over' } });
  });

  it('write-state writes, rewind rewinds, and a blob that is not there is an error of the store', async () => {
    const { conversation, ask } = await served({ replies: ['one'] });
    expect(value(await ask({ actId: 'a', type: 'write-state', writes: { k: 1 } }))).toMatchObject({ entries: 2 });
    expect(conversation.state).toEqual({ k: 1 });
    const { messageId } = value(await ask({ actId: 'b', type: 'send', content: 'hi' })) as { messageId: string };
    await entry(conversation, 'run-stop');
    await ask({ actId: 'c', type: 'rewind', messageId });
    expect(conversation.messages()).toEqual([]);
    expect(await ask({ actId: 'd', type: 'rewind', messageId: 'none' })).toMatchObject({
      error: { code: 'not_found' },
    });
    expect(await ask({ actId: 'e', type: 'blob', reference: 'blob:none' })).toMatchObject({ error: { code: 'store' } });
  });
});

it('a conversation whose lease is over is closed', async () => {
  const { conversation, acts$ } = await served();
  const close = vi.spyOn(conversation, 'close');
  acts$.error(new Error('lease over'));
  expect(close).toHaveBeenCalledTimes(1);
  await close.mock.results[0]?.value;
  expect(() => conversation.send('hi')).toThrow(/is closed; open it again/);
});

it('the live signals of a served conversation are shared', async () => {
  const { conversation, shared } = await served();
  expect(shared).toEqual([conversation.live$]);
});
