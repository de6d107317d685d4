/** The policy `observerErrors`: a subscriber that throws (docs/internals/contracts.md, REQ-BED-011). */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Conversation, RunResult } from '../../src/index.ts';
import { pairingFaults } from '../../src/testing/pairingFaults.ts';
import { type Bench, type BenchOptions, bench, only } from '../support/agentBench.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, t } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';

const SECRET = 'sk-very-secret';
const propagate = { observerErrors: 'propagate' } as const;

/** Collects uncaught errors of the library during the test. */
function uncaught(): unknown[] {
  const found: unknown[] = [];
  const take = (error: unknown): void => void found.push(error);
  process.on('uncaughtException', take);
  process.on('unhandledRejection', take);
  onTestFinished(() => {
    process.off('uncaughtException', take);
    process.off('unhandledRejection', take);
  });
  return found;
}

/** Throws once, when `when` is true. */
function once<T>(when: (value: T) => boolean): (value: T) => void {
  let thrown = false;
  return (value) => {
    if (thrown || !when(value)) return;
    thrown = true;
    throw new Error(`careless, with ${SECRET}`);
  };
}

const watchers: [string, (on: Conversation) => void][] = [
  ['log$, at the message', (on) => void on.log$().subscribe(once(({ type }) => type === 'user-message'))],
  ['log$, at a reply', (on) => void on.log$().subscribe(once(({ type }) => type === 'model-reply'))],
  ['log$, at the start of a tool', (on) => void on.log$().subscribe(once(({ type }) => type === 'tool-started'))],
  ['log$, at a result', (on) => void on.log$().subscribe(once(({ type }) => type === 'tool-result'))],
  ['live$, at a delta', (on) => void on.live$.subscribe(once(({ type }) => type === 'text-delta'))],
  ['live$, at the progress of a tool', (on) => void on.live$.subscribe(once(({ type }) => type === 'tool-progress'))],
  ['view$, at a block', (on) => void on.view$.subscribe(once(({ cycles }) => (cycles[0]?.steps.length ?? 0) > 1))],
];

/** The log is complete: every call has its result, and the cycle has one stop. */
function whole({ conversation }: Bench): void {
  const log = conversation.log();
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index));
  expect(only(log, 'run-stop')).toHaveLength(only(log, 'run-started', 'run-resumed').length);
  expect(pairingFaults([...conversation.messages(), { role: 'user', content: [] }])).toEqual([]);
}

describe('observerErrors propagate', () => {
  describe.each([{ synchronous: true }, { synchronous: false }])('on a store (%o)', (how) => {
    it.each(watchers)('an error in %s ends the active run as a separate error', async (_, watch) => {
      const found = uncaught();
      const on = await bench({
        replies: [[t('let me see'), call('c1', 'echo', { m: 'a' })], 'done', 'next'],
        tools: [echoTool().tool],
        policies: propagate,
        secrets: [SECRET],
        store: troubledStore(how),
      });
      watch(on.conversation);
      const result = await on.conversation.send('hi').result;
      expect(result).toMatchObject({ termination: 'Error', cause: 'internal', reason: 'error' });
      expect(result.error).toEqual({ code: 'observer', message: 'Error: careless, with [redacted]' });
      whole(on);
      expect(on.conversation.status).toBe('error');
      expect((await on.conversation.send('again').result).termination).toBe('NaturalEnd');
      whole(on);
      expect(JSON.stringify(on.conversation.log())).not.toContain(SECRET);
      await on.agent.close();
      expect(found).toEqual([]);
    });
  });

  it('running tools are aborted, and unfinished calls have a result with that reason', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'x'], tools: [gate.tool], policies: propagate });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    let hasThrown = false;
    gate.context('c1').signal.addEventListener('abort', () => {
      hasThrown = true;
    });
    expect(() => on.conversation.live$.subscribe(once(({ type }) => type === 'tool-progress'))).not.toThrow();
    gate.context('c1').progress('half');
    expect((await run.result).error?.code).toBe('observer');
    expect(hasThrown).toBe(true);
    whole(on);
    expect(only(on.conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
  });

  const over: [string, BenchOptions, (on: Bench) => Promise<unknown>][] = [
    [
      'when nothing runs',
      { replies: [] },
      async ({ conversation }) => {
        conversation.log$().subscribe(once(() => true));
      },
    ],
    [
      'at the entry that ends a run',
      { replies: ['x'] },
      async ({ conversation }) => {
        conversation.log$().subscribe(once(({ type }) => type === 'run-stop'));
        const result: RunResult = await conversation.send('hi').result;
        expect(result.termination).toBe('NaturalEnd');
      },
    ],
    [
      'while a run is being cancelled',
      { replies: [deaf()] },
      async ({ conversation, clock }) => {
        const run = conversation.send('hi');
        await clock.advance(0);
        conversation.log$().subscribe(once(({ type }) => type === 'run-stop'));
        await run.cancel();
        expect((await run.result).termination).toBe('Cancelled');
      },
    ],
  ];
  it.each(over)('%s there is no run to end: the error is a diagnostic', async (_, options, act) => {
    const found = uncaught();
    const on = await bench({ ...options, policies: propagate, secrets: [SECRET] });
    await act(on);
    await on.clock.advance(10);
    expect(only(on.conversation.log(), 'diagnostic')).toEqual(['diagnostic observer_error']);
    expect(JSON.stringify(on.conversation.log())).not.toContain(SECRET);
    expect(found).toEqual([]);
  });

  it('a subscriber that always throws is detached after three times, and receives nothing later', async () => {
    const on = await bench({ replies: ['one', 'two', 'three', 'four'], policies: propagate });
    let called = 0;
    on.conversation.log$().subscribe(() => {
      called += 1;
      throw new Error('always');
    });
    const [first, second] = [await on.conversation.send('1').result, await on.conversation.send('2').result];
    expect([first, second].map(({ termination }) => termination).at(-1)).toBe('NaturalEnd');
    expect(called).toBe(3);
    whole(on);
  });

  it('an error of a reader that iterates a run is thrown in its own loop and nowhere else', async () => {
    const on: Bench = await bench({ replies: [during(() => undefined, 'one')], policies: propagate });
    const run = on.conversation.send('hi');
    const read = async (): Promise<void> => {
      for await (const item of run) throw new Error(`careless at ${item.type}`);
    };
    await expect(read()).rejects.toThrow('careless');
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(only(on.conversation.log(), 'diagnostic')).toEqual([]);
  });
});

it('observerErrors isolate: a subscriber that throws does not affect the run, and is reported without secrets', async () => {
  const found = uncaught();
  const on = await bench({ replies: ['one'], secrets: [SECRET] });
  on.conversation.log$().subscribe(once(({ type }) => type === 'model-reply'));
  expect((await on.conversation.send('hi').result).termination).toBe('NaturalEnd');
  await on.clock.advance(0);
  expect(only(on.conversation.log(), 'diagnostic')).toEqual(['diagnostic observer_error']);
  expect(JSON.stringify(on.conversation.log())).not.toContain(SECRET);
  expect(found).toEqual([]);
});
