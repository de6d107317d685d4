/** Clocks that jump, long timers, and thousands of listeners or listeners that fail late. */
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { defineTool, ModelError, type ModelPart } from '../../src/index.ts';
import { codingTools, hooks } from '../../src/node.ts';
import { project } from '../../src/projector/index.ts';
import { platformPorts } from '../../src/runtime/hostPorts.ts';
import { bench, entry } from '../support/agentBench.ts';
import { call, scripted, t } from '../support/scriptedReplies.ts';
import { proves } from '../support/tier.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

afterEach(() => void vi.useRealTimers());

describe('time', () => {
  /** A model that sends this many parts, one every 700 ms; `clock` is set to `jump` after the second one. */
  async function streaming(parts: number, jump: number) {
    const clock = new VirtualClock();
    let sent = 0;
    let next = (): void => {};
    const model = {
      id: 'm',
      async *stream(): AsyncGenerator<ModelPart> {
        for (; sent < parts; sent++) {
          yield { type: 'text-delta', text: `${sent}` };
          if (sent === 1) clock.offsetMs = jump;
          await new Promise<void>((resolve) => clock.setTimer(700, resolve));
        }
        if (parts < 10) await new Promise<void>((resolve) => (next = resolve));
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const policies = { modelTimeout: { idleMs: 1_000 }, modelRetry: { attempts: 1 } };
    const { conversation } = await bench({ model: model as never, clock, policies });
    let over: string | undefined;
    void conversation.send('hi').result.then(({ termination }) => {
      over = termination;
      next();
    });
    return { clock, over: () => over };
  }

  it.each([
    ['an hour back', -3_600_000],
    ['a second back', -1_000],
    ['an hour forward', 3_600_000],
    ['nowhere', 0],
  ])(
    'H-330 a model that is silent after the clock was set %s is abandoned within twice the silence limit',
    async (_, jump) => {
      const { clock, over } = await streaming(2, jump);
      await clock.advance(1_400);
      expect(over()).toBeUndefined();
      await clock.advance(1_500);
      expect(over()).toBe('Error');
    },
  );

  it.each([
    ['an hour back', -3_600_000],
    ['ten years forward', 10 * 365 * 86_400_000],
  ])('H-330 a model that continues to send is not abandoned if the clock is set %s', async (_, jump) => {
    const { clock, over } = await streaming(10, jump);
    for (let passed = 0; passed < 7_000; passed += 100) await clock.advance(100);
    expect(over()).toBe('NaturalEnd');
  });

  it.each([
    ['an hour back', -3_600_000],
    ['ten years forward', 10 * 365 * 86_400_000],
  ])('H-330 a wall clock that jumps %s in a retry wait does not change its length', async (_, jump) => {
    const clock = new VirtualClock();
    const model = scripted([new ModelError({ code: 'server' }), new ModelError({ code: 'server' }), 'done']);
    const policies = { modelRetry: { jitter: 0 }, limits: { runMs: 60_000 } };
    const { conversation } = await bench({ model, clock, policies });
    const run = conversation.send('hi');
    await entry(conversation, 'model-retry');
    clock.offsetMs = jump;
    await clock.advance(999);
    expect(model.attempts).toEqual([1]);
    await clock.advance(1);
    expect(model.attempts).toEqual([1, 2]);
    await clock.advance(1_999);
    expect(model.attempts).toEqual([1, 2]);
    await clock.advance(1);
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(model.attempts).toEqual([1, 2, 3]);
    expect(clock.waiting).toBe(0);
    const log = conversation.log();
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index));
    expect(project(log).cycles).toMatchObject([{ stop: { reason: 'completed' } }]);
  });

  it('H-331 a timer of 30 days fires in 30 days, and a stopped one never fires', () => {
    vi.useFakeTimers();
    const fired: string[] = [];
    const days = 86_400_000;
    platformPorts.setTimer(30 * days, () => fired.push('thirty'));
    const stop = platformPorts.setTimer(40 * days, () => fired.push('forty'));
    vi.advanceTimersByTime(30 * days - 1);
    expect(fired).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(fired).toEqual(['thirty']);
    stop();
    vi.advanceTimersByTime(60 * days);
    expect(fired).toEqual(['thirty']);
    expect(vi.getTimerCount()).toBe(0);
  });
});

/** Unhandled rejections during the test. */
function unhandled(): unknown[] {
  const found: unknown[] = [];
  const note = (reason: unknown): void => void found.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  return found;
}

describe('listeners', () => {
  it('H-334 a subscriber, a view, a hook, a tool and a plugin that reject later are diagnostics, and the run is unaffected', async () => {
    const found = unhandled();
    const late = async (): Promise<never> => {
      await Promise.resolve();
      throw new Error('late');
    };
    const careless = defineTool({
      name: 'careless',
      description: 'c',
      parameters: z.object({}),
      execute: (_, { signal }) => {
        signal.addEventListener('abort', late);
        return 'ok';
      },
    });
    const { conversation, clock } = await bench({
      tools: [careless],
      plugins: [hooks({ PostToolUse: [{ run: late }] }), { name: 'late', stepEnd: late }],
      replies: [[call('c1', 'careless')], 'done'],
    });
    for (const stream$ of [conversation.log$(), conversation.view$, conversation.live$])
      (stream$ as { subscribe(next: () => unknown): unknown }).subscribe(late);
    const { termination, text } = await conversation.send('hi').result;
    await clock.advance(10);
    expect([termination, text]).toEqual(['NaturalEnd', 'done']);
    const codes = conversation.log().flatMap((each) => (each.type === 'diagnostic' ? [each.code] : []));
    expect(new Set(codes)).toEqual(new Set(['observer_error', 'hook_error', 'plugin_error']));
    expect(found).toEqual([]);
  });

  it('H-334 a subscriber that rejects repeatedly is detached', async () => {
    const found = unhandled();
    const { conversation, clock } = await bench({ replies: ['one', 'two', 'three'] });
    let called = 0;
    conversation.log$().subscribe(async () => {
      called += 1;
      throw new Error('again');
    });
    for (const text of ['a', 'b', 'c']) await conversation.send(text).result;
    await clock.advance(10);
    expect(called).toBeLessThan(conversation.log().length / 2);
    expect(found).toEqual([]);
  });

  it('H-336 thousands of disconnected subscribers are released, and none receives anything more', async () => {
    const many = proves ? 10_000 : 2_000;
    const { conversation } = await bench({
      replies: [
        [t('a'), t('b')],
        [t('c'), t('d')],
      ],
    });
    await conversation.send('hi').result;
    let notificationCount = 0;
    const count = (): void => {
      notificationCount += 1;
    };
    const streams = [conversation.log$(Number.MAX_SAFE_INTEGER), conversation.live$, conversation.view$];
    const all = Array.from({ length: many }, () =>
      streams.map((stream$) =>
        (stream$ as { subscribe(next: () => void): { unsubscribe(): void; closed: boolean } }).subscribe(count),
      ),
    );
    for (const subscriptions of all) for (const subscription of subscriptions) subscription.unsubscribe();
    expect(all.flat().every(({ closed }) => closed)).toBe(true);
    notificationCount = 0;
    await conversation.send('again').result;
    await flush();
    expect(notificationCount).toBe(0);
  });
});

it('H-338 no tool of the default list fetches an address', () => {
  expect(codingTools().map(({ name }) => name)).toEqual(['Read', 'Ls', 'Glob', 'Grep', 'Bash', 'Write', 'Edit']);
});
