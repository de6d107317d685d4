/**
 * Messages with ids of the host: a repeated id is the same message. Also, the effect of one message on waiting calls.
 */
import { describe, expect, it } from 'vitest';
import { ConfigurationError, type LogEntry, type RunResult } from '../../src/index.ts';
import { bench, entry, only, restart, storeWith } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, during, lines, type Reply } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const held = () => {
  let goOn = (): void => {};
  const wait = new Promise<void>((resolve) => {
    goOn = () => resolve();
  });
  return { wait, goOn: () => goOn() };
};
/** The parts of a result that the log contains; the words of an error and ended waits are not in it. */
const storedPart = ({ error: _, pending: _p, ...result }: RunResult) => result;

describe('a message that is repeated under its id', () => {
  it('while its run continues, in the same tick or later, that run answers it, and nothing is queued', async () => {
    const { wait, goOn } = held();
    // The store is slow: in the same tick the log contains nothing.
    const on = await bench({ store: troubledStore(), replies: [during(() => wait, 'done')] });
    const run = on.conversation.send('hi', { messageId: 'm1' });
    expect(only(on.conversation.log(), 'user-message')).toEqual([]);
    expect(on.conversation.send('hi', { messageId: 'm1' })).toBe(run);
    await entry(on.conversation, 'user-message');
    expect(on.conversation.send('hi', { messageId: 'm1' })).toBe(run);
    goOn();
    expect(await run.result).toMatchObject({ runId: 'run_m1', text: 'done' });
    expect(only(on.conversation.log(), 'user-message', 'message-queued')).toEqual(['user-message direct hi']);
    expect(on.model.calls).toHaveLength(1);
  });

  it.each(['constructor', 'toString', 'hook', 'store'])(
    'whose run ended by %s in the log ends with an error, and by no limit',
    async (cause) => {
      const first = await bench({ replies: ['done'] });
      await first.conversation.send('hi', { messageId: 'm1' }).result;
      const log = first.conversation
        .log()
        .map((each) => (each.type === 'run-stop' ? { ...each, reason: 'error', cause } : each));
      const { conversation } = await bench({ store: await storeWith(log as LogEntry[]) });
      const { result } = conversation.send('hi', { messageId: 'm1' });
      expect(await result).toMatchObject({ cause, subtype: 'error_during_execution' });
    },
  );

  it('whose run was cancelled before a slow store has it, it is stored once', async () => {
    const { wait, goOn } = held();
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const on = await bench({ store, clock, replies: ['done'] });
    store.trouble((entries) => (entries.some(({ type }) => type === 'user-message') ? { after: wait } : 'stored'));
    const run = on.conversation.send('hi', { messageId: 'm1' });
    await clock.advance(0);
    const cancelled = on.conversation.cancel();
    await clock.advance(1000);
    await cancelled;
    await run.result;
    const again = on.conversation.send('hi', { messageId: 'm1' });
    goOn();
    await clock.advance(1000);
    await again.result;
    await on.conversation.close();
    expect(only(on.conversation.log(), 'user-message')).toEqual(['user-message direct hi']);
  });

  it.each([10, 20, 30, 40, 60])(
    'that steers a run whose stop is stored and whose last messages are not, it is stored once, also %i ms later',
    async (ms) => {
      const clock = new VirtualClock();
      const store = troubledStore({ clock });
      const never = new Promise<void>(() => {});
      const on = await bench({ store, clock, replies: [during(() => never, 'no'), 'done', 'done', 'done'] });
      on.conversation.send('hi', { messageId: 'm1' });
      await clock.advance(0);
      store.trouble((entries) =>
        entries.some(({ type }) => type === 'message-queued') ? { afterMs: 20 } : { afterMs: 3 },
      );
      const cancelled = on.conversation.cancel();
      on.conversation.send('after it', { kind: 'followUp', messageId: 'm3' });
      await clock.advance(5);
      on.conversation.send('turn', { kind: 'steer', messageId: 'm4' });
      await clock.advance(ms);
      on.conversation.send('turn', { kind: 'steer', messageId: 'm4' });
      await clock.advance(2000);
      await cancelled;
      await on.conversation.close();
      const named = on.conversation.log().filter((each) => 'messageId' in each && each.messageId === 'm4');
      expect(named.map(({ type }) => type)).toEqual([...new Set(named.map(({ type }) => type))]);
    },
  );

  const ends: readonly (readonly [string, readonly Reply[], object])[] = [
    ['completed', ['done'], {}],
    ['suspended', [[call('c1', 'ask', { m: '' })]], {}],
    ['failed', [[call('c1', 'echo', { m: '' })]], {}],
    ['ended by its time limit', ['no'], { policies: { limits: { runMs: 0 } } }],
    ['stopped by a limit', [[call('c1', 'echo', { m: '' })], 'no'], { policies: { limits: { turns: 1 } } }],
    [
      'ended by a plugin',
      ['done'],
      { plugins: [{ name: 'enough', beforeInference: () => ({ terminate: 'enough' }) }] },
    ],
  ];
  it.each(ends)('after its run was %s it has the same result, also after a restart', async (_, replies, more) => {
    const options = { tools: [echoTool().tool, echoTool('ask').tool], plugins: [asks().plugin], replies, ...more };
    const on = await bench(options);
    const first = await on.conversation.send('hi', { messageId: 'm1' }).result;
    const length = on.conversation.log().length;
    const again = on.conversation.send('hi', { messageId: 'm1' });
    expect(storedPart(await again.result)).toEqual(storedPart(first));
    const items: unknown[] = [];
    for await (const item of again) items.push(item);
    expect(items).toEqual(on.conversation.log().filter(({ runId }) => runId === 'run_m1'));
    const later = await restart(on, { ...options, replies: [] });
    expect(storedPart(await later.conversation.send('hi', { messageId: 'm1' }).result)).toEqual(storedPart(first));
    expect(on.conversation.log()).toHaveLength(length);
  });

  it('a repeated steer or followUp is accepted once, and belongs to the run that takes it', async () => {
    const { wait, goOn } = held();
    const on = await bench({
      replies: [during(() => wait, [call('c1', 'echo', { m: '' })]), 'one', 'two'],
      tools: [echoTool().tool],
    });
    const run = on.conversation.send('hi');
    await entry(on.conversation, 'user-message');
    const sent = () => [
      on.conversation.send('left', { kind: 'steer', messageId: 's' }),
      on.conversation.send('then', { kind: 'followUp', messageId: 'f' }),
    ];
    const [steered, followed] = sent();
    expect(sent()).toEqual([steered, followed]);
    await entry(on.conversation, 'message-queued', ({ messageId }) => messageId === 'f');
    expect(sent()).toEqual([steered, followed]);
    goOn();
    await followed?.result;
    expect([steered, await followed?.text]).toEqual([run, 'two']);
    const kinds = only(on.conversation.log(), 'user-message');
    expect(kinds).toEqual(['user-message direct hi', 'user-message steer left', 'user-message followUp then']);
    const results = await Promise.all(sent().map(({ result }) => result));
    expect(results.map(({ text }) => text)).toEqual(['one', 'two']);
    expect(only(on.conversation.log(), 'user-message')).toEqual(kinds);
  });

  it('a repeated followUp after a restart belongs to its own run, not to the one before it', async () => {
    const first = held();
    const before = await bench({ replies: [during(() => first.wait, 'never')] });
    before.conversation.send('hi');
    await entry(before.conversation, 'user-message');
    before.conversation.send('left', { kind: 'steer', messageId: 's' });
    before.conversation.send('then', { kind: 'followUp', messageId: 'f' });
    await entry(before.conversation, 'message-queued', ({ messageId }) => messageId === 'f');
    const store = await storeWith(before.conversation.log());
    const { wait, goOn } = held();
    const on = await bench({ store, policies: { onRestart: 'resume' }, replies: [during(() => wait, 'one'), 'two'] });
    await entry(on.conversation, 'user-message', ({ messageId }) => messageId === 's');
    const repeated = on.conversation.send('then', { kind: 'followUp', messageId: 'f' });
    goOn();
    expect(await repeated.result).toMatchObject({ runId: 'run_f', text: 'two' });
    expect(only(on.conversation.log(), 'user-message')).toEqual([
      'user-message direct hi',
      'user-message steer left',
      'user-message followUp then',
    ]);
  });

  it('a returned message is returned again, and a message that a store rejected may be sent again', async () => {
    const store = troubledStore();
    const on = await bench({
      store,
      replies: [[call('c1', 'ask', { m: '' })], 'done', 'more'],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    const stop = new AbortController();
    const queued = on.conversation.send('then', { messageId: 'f', signal: stop.signal });
    await entry(on.conversation, 'message-queued');
    stop.abort();
    expect((await queued.result).termination).toBe('Cancelled');
    expect((await on.conversation.send('then', { messageId: 'f' }).result).termination).toBe('Cancelled');
    await on.conversation.cancel();
    store.trouble(() => 'failed');
    expect((await on.conversation.send('new', { messageId: 'n' }).result).termination).toBe('Error');
    store.trouble(() => 'stored');
    expect((await on.conversation.send('new', { messageId: 'n' }).result).text).toBe('done');
  });

  it.each([7, '', 'a/b', 'a\nb', 'x'.repeat(201)])('an id %j is refused before anything starts', async (messageId) => {
    const on = await bench({ replies: [] });
    expect(() => on.conversation.send('hi', { messageId: messageId as string })).toThrow(ConfigurationError);
    expect(on.conversation.log()).toHaveLength(1);
  });
});

describe('whileSuspended of one message', () => {
  const waiting = (policy: 'followUp' | 'reject' | 'denyAndRun') =>
    bench({
      replies: [[call('c1', 'ask', { m: '' })], 'done'],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
      policies: { whileSuspended: policy },
    });
  const all = ['followUp', 'reject', 'denyAndRun'] as const;

  it.each(all.flatMap((policy) => all.map((asked) => [asked, policy] as const)))(
    '%s replaces the policy %s',
    async (whileSuspended, policy) => {
      const on = await waiting(policy);
      await on.conversation.send('hi').result;
      if (whileSuspended === 'reject') {
        expect(() => on.conversation.send('new', { whileSuspended })).toThrow('agent is busy');
      } else if (whileSuspended === 'followUp') {
        on.conversation.send('new', { whileSuspended });
        await entry(on.conversation, 'message-queued');
      } else {
        expect((await on.conversation.send('new', { whileSuspended }).result).text).toBe('done');
        expect(lines(on.model.calls[1]?.messages ?? [])[2]).toContain('a new message came first');
      }
      expect(on.conversation.status).toBe(whileSuspended === 'denyAndRun' ? 'idle' : 'waiting');
    },
  );
});
