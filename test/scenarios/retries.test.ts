/**
 * Failing model calls: attempts, waits, fallbacks and time-outs, in virtual time (docs/internals/lifecycle.md,
 * LLM_CALL).
 */
import { describe, expect, it } from 'vitest';
import { type DeepPartial, type Live, ModelError, type ModelPart, type Policies } from '../../src/index.ts';
import { type Bench, bench, entry, only, story } from '../support/agentBench.ts';
import { deaf, finish, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';

const failing = (code: string, more: { status?: number; retryAfterMs?: number } = {}): ModelError =>
  new ModelError({ code, message: `it is ${code}`, ...more });
const busy = (): ModelError => failing('rate-limit', { status: 429 });

/** Runs one request in virtual time; returns its result and its duration. */
async function outcome(on: Bench) {
  const run = on.conversation.send('hi');
  const tookMs = await on.clock.until(run.result, 1_000_000);
  return { ...(await run.result), tookMs };
}

describe('attempts', () => {
  it('S003-10: the same model is called four times, visibly, and the fourth failure contains the number of attempts', async () => {
    const on = await bench({ replies: [busy(), busy(), busy(), busy()] });
    const statuses: string[] = [];
    on.conversation.log$().subscribe((each) => each.type === 'model-retry' && statuses.push(on.conversation.status));
    const result = await outcome(on);
    expect(result).toMatchObject({ termination: 'Error', cause: 'model', reason: 'error' });
    expect(result.error?.code).toBe('rate-limit');
    expect(result.error?.message).toMatch(/it is rate-limit.*4 attempts/);
    expect(on.model.attempts).toEqual([1, 2, 3, 4]);
    expect(statuses).toEqual(['active', 'active', 'active']);
    expect(only(on.conversation.log(), 'model-retry')).toEqual([
      'model-retry 2 1000 scripted',
      'model-retry 3 2000 scripted',
      'model-retry 4 4000 scripted',
    ]);
    expect(on.conversation.status).toBe('error');
  });

  it('S003-11: the waits grow by the factor from the configured base, up to the maximum', async () => {
    const modelRetry = { attempts: 5, baseMs: 100, factor: 3, capMs: 500 };
    const on = await bench({ replies: [busy(), busy(), busy(), busy(), 'ok'], policies: { modelRetry } });
    const result = await outcome(on);
    expect(result.text).toBe('ok');
    expect(on.clock.waits.filter((ms) => ms < 60_000)).toEqual([100, 300, 500, 500]);
    expect(result.tookMs).toBe(1400);
  });

  it('S003-11: without a base no attempt waits, however often the factor is applied', async () => {
    const modelRetry = { attempts: 4, baseMs: 0, factor: 1e200 };
    const on = await bench({ replies: [busy(), busy(), busy(), 'ok'], policies: { modelRetry } });
    await outcome(on);
    const waits = on.conversation.log().flatMap((each) => (each.type === 'model-retry' ? [each.waitMs] : []));
    expect(waits).toEqual([0, 0, 0]);
  });

  it('S003-11: without other values the waits double from a second up to half a minute', async () => {
    const on = await bench({
      replies: Array.from({ length: 8 }, () => busy()),
      policies: { modelRetry: { attempts: 8 } },
    });
    await outcome(on);
    expect(on.clock.waits.filter((ms) => ms < 60_000)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  it('S003-11: a wait is lengthened by jitter × random', async () => {
    const on = await bench({ replies: [busy(), 'ok'], random: () => 0.5, policies: { modelRetry: { jitter: 0.1 } } });
    expect((await outcome(on)).tookMs).toBe(1050);
  });

  it.each(['network', 'timeout', 'rate-limit', 'server', 'stream-incomplete'])(
    'S003-13: %s is retried',
    async (code) => {
      const on = await bench({ replies: [failing(code), 'ok'] });
      expect((await outcome(on)).text).toBe('ok');
      expect(on.model.calls).toHaveLength(2);
    },
  );

  it.each([408, 409, 429, 500, 503, 529])(
    'S003-13: a failure with a code of the model and status %i is retried',
    async (status) => {
      const on = await bench({ replies: [failing('overloaded', { status }), 'ok'] });
      expect((await outcome(on)).text).toBe('ok');
    },
  );

  it.each([
    ['overloaded', 400],
    ['overloaded', 422],
    ['quota', 429],
    ['content-filter', 500],
  ])('S003-13: %s with status %i is final', async (code, status) => {
    const on = await bench({ replies: [failing(code, { status }), 'never'] });
    expect((await outcome(on)).error?.code).toBe(code);
    expect(on.model.calls).toHaveLength(1);
  });

  it.each(['auth', 'bad-request', 'not-found', 'quota', 'content-filter'])(
    'S003-13: %s ends the run at once',
    async (code) => {
      const on = await bench({ replies: [failing(code), 'never'] });
      const result = await outcome(on);
      expect(result).toMatchObject({ termination: 'Error', tookMs: 0 });
      expect(result.error?.code).toBe(code);
      expect(on.model.calls).toHaveLength(1);
    },
  );

  it('S003-13: any other error of a model counts as a network failure', async () => {
    const on = await bench({ replies: [new Error('socket hang up'), 'ok'] });
    expect((await outcome(on)).text).toBe('ok');
    const retry = await entry(on.conversation, 'model-retry');
    expect(retry.reason).toBe('network: socket hang up');
  });

  it('H-001: a stream that ends without a finish is a failed attempt, and no view contains its text', async () => {
    const cut = async function* (): AsyncGenerator<ModelPart> {
      yield t('half');
    };
    const on = await bench({ replies: [cut, 'whole'] });
    const live: Live[] = [];
    on.conversation.live$.subscribe((signal) => live.push(signal));
    expect((await outcome(on)).text).toBe('whole');
    expect(story(on.conversation.log()).join('\n')).not.toContain('half');
    expect(live.map(({ type }) => type).filter((type) => type !== 'status')).toEqual([
      'text-delta',
      'reset',
      'text-delta',
    ]);
    expect((await entry(on.conversation, 'model-retry')).reason).toContain('stream-incomplete');
  });

  it.each<[string, ModelPart]>([
    ['reasoning-delta', { type: 'reasoning-delta', text: 'let me think' }],
    ['tool-input-delta', { type: 'tool-call-delta', index: 0, name: 'f', text: '{"a":' }],
  ])('a failed attempt that streamed %s alone is reset too, before the next one', async (type, part) => {
    const cut = async function* (): AsyncGenerator<ModelPart> {
      yield part;
    };
    const on = await bench({ replies: [cut, cut, 'whole'] });
    const live: Live[] = [];
    on.conversation.live$.subscribe((signal) => live.push(signal));
    expect((await outcome(on)).text).toBe('whole');
    const streamed = live.map((signal) => signal.type).filter((each) => each !== 'status');
    expect(streamed).toEqual([type, 'reset', type, 'reset', 'text-delta']);
  });

  it('S003-14: a message after the error state continues the conversation with its history', async () => {
    const on = await bench({ replies: [failing('auth'), 'ok'] });
    await outcome(on);
    expect(on.conversation.status).toBe('error');
    expect((await on.conversation.send('again').result).text).toBe('ok');
    expect(lines(on.model.calls[1]?.messages ?? [])).toEqual(['user hi', 'user again']);
    expect(on.model.attempts).toEqual([1, 1]);
  });
});

describe('the wait that the provider requests', () => {
  const asksFor = (retryAfterMs: number) => failing('rate-limit', { retryAfterMs });

  it('S002-31: a Retry-After replaces the computed wait, longer or shorter', async () => {
    const on = await bench({ replies: [asksFor(7000), asksFor(10), 'ok'] });
    expect((await outcome(on)).tookMs).toBe(7010);
    expect(only(on.conversation.log(), 'model-retry')).toEqual([
      'model-retry 2 7000 scripted',
      'model-retry 3 10 scripted',
    ]);
  });

  it('H-042: a Retry-After above the limit fails at once, with or without fallback models', async () => {
    const other = scripted(['never'], { id: 'other' });
    const on = await bench({ replies: [asksFor(277_403_000)], policies: { modelRetry: { fallbackModels: [other] } } });
    expect(await outcome(on)).toMatchObject({ termination: 'Error', tookMs: 0, error: { code: 'rate-limit' } });
    expect(on.model.calls).toHaveLength(1);
    expect(other.calls).toHaveLength(0);
  });

  it('with respectRetryAfter false the computed wait is used', async () => {
    const on = await bench({
      replies: [asksFor(277_403_000), 'ok'],
      policies: { modelRetry: { respectRetryAfter: false } },
    });
    expect((await outcome(on)).tookMs).toBe(1000);
  });
});

describe('fallback models', () => {
  const withFallback = async (replies: readonly Reply[], others: readonly Reply[], attempts = 2) => {
    const other = scripted(others, { id: 'other' });
    // The agent's own model does not count as another model.
    const own = scripted([], { id: 'scripted' });
    const on = await bench({ replies, policies: { modelRetry: { attempts, fallbackModels: [own, other] } } });
    return { ...on, other, own };
  };

  it.each<[named: number | undefined, own: number | undefined, sent: number | undefined]>([
    [undefined, 4_096, 4_096],
    [undefined, undefined, undefined],
    [500, 4_096, 500],
  ])('are asked with their own output limit, unless the request names one: %j, %j', async (named, own, sent) => {
    const limited = own === undefined ? {} : { maxOutputTokens: own };
    const other = scripted(['ok'], { id: 'other', ...limited });
    const model = scripted([busy()], { maxOutputTokens: 64_000 });
    const on = await bench({ model, policies: { modelRetry: { attempts: 1, fallbackModels: [other] } } });
    const run = on.conversation.send('hi', named === undefined ? {} : { settings: { maxOutputTokens: named } });
    await on.clock.until(run.result, 1_000_000);
    expect(model.calls.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([named ?? 64_000]);
    expect(other.calls.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([sent]);
  });

  it('after the last attempt the next distinct model starts its own attempts, and attempt numbers continue', async () => {
    const on = await withFallback([busy(), busy()], [busy(), 'from the other']);
    const result = await outcome(on);
    expect(result.text).toBe('from the other');
    expect(on.model.attempts).toEqual([1, 2]);
    expect(on.other.attempts).toEqual([3, 4]);
    expect(on.own.calls).toEqual([]);
    expect(only(on.conversation.log(), 'model-retry')).toEqual([
      'model-retry 2 1000 scripted',
      'model-retry 3 0 other',
      'model-retry 4 1000 other',
    ]);
    expect((await entry(on.conversation, 'model-reply')).model).toBe('other');
  });

  it('a failure that is not retried does not switch models', async () => {
    const on = await withFallback([failing('auth')], ['never']);
    expect((await outcome(on)).termination).toBe('Error');
    expect(on.other.calls).toHaveLength(0);
  });

  it('the next turn starts with the agent’s own model again', async () => {
    const on = await withFallback([busy(), 'second'], ['first'], 1);
    expect((await outcome(on)).text).toBe('first');
    expect((await on.conversation.send('more').result).text).toBe('second');
  });
});

describe('time-outs of the model', () => {
  const timed = async (replies: readonly Reply[], modelTimeout: DeepPartial<Policies['modelTimeout']>) =>
    bench({ replies, policies: { modelTimeout, modelRetry: { attempts: 1 } } });
  /** Yields a part every `ms`. */
  const ticking = (clock: () => Bench, ms: number, count: number): Reply =>
    async function* () {
      for (let tick = 0; tick < count; tick++) {
        await new Promise<void>((resolve) => void clock().clock.setTimer(ms, resolve));
        yield t('.');
      }
      yield finish('stop');
    };

  it('firstPartMs: a model that emits nothing', async () => {
    const on = await timed([deaf()], { firstPartMs: 300, idleMs: 50 });
    expect(await outcome(on)).toMatchObject({ tookMs: 300, error: { code: 'timeout' } });
    expect(on.model.signals[0]?.aborted).toBe(true);
    expect(on.clock.waiting).toBe(0);
  });

  it('idleMs: a model that stops in the middle, counted from its last part', async () => {
    const on = await timed([deaf(t('par'))], { firstPartMs: 10_000, idleMs: 200 });
    expect(await outcome(on)).toMatchObject({ tookMs: 200, error: { code: 'timeout' } });
    expect(on.clock.waiting).toBe(0);
  });

  it('idleMs: each new part resets it', async () => {
    const on = await timed([ticking(() => on, 150, 10)], { firstPartMs: 200, idleMs: 200 });
    expect(await outcome(on)).toMatchObject({ tookMs: 1500, text: '..........' });
  });

  it('idleMs: silence after several parts is counted from the last one, with one timer', async () => {
    const parts = async function* (): AsyncGenerator<ModelPart> {
      for (let part = 0; part < 5; part++) {
        await new Promise<void>((resolve) => void on.clock.setTimer(150, resolve));
        yield t('.');
      }
      await new Promise(() => undefined);
    };
    const on = await timed([parts], { firstPartMs: 200, idleMs: 200 });
    expect(await outcome(on)).toMatchObject({ tookMs: 5 * 150 + 200, error: { code: 'timeout' } });
    expect(on.clock.waiting).toBe(0);
  });

  it('idleMs: a value that is not a part does not reset it', async () => {
    const ticks = async function* (): AsyncGenerator<ModelPart> {
      yield t('par');
      for (let tick = 0; tick < 20; tick++) {
        await new Promise<void>((resolve) => void on.clock.setTimer(50, resolve));
        yield { type: 'keep-alive' } as never;
      }
    };
    const on = await timed([ticks], { firstPartMs: 200, idleMs: 200 });
    expect(await outcome(on)).toMatchObject({ tookMs: 200, error: { code: 'timeout' } });
  });

  it('firstPartMs: a value that is not a part does not stop it', async () => {
    const nonsense = async function* (): AsyncGenerator<ModelPart> {
      yield null as never;
      await new Promise(() => undefined);
    };
    const on = await timed([nonsense], { firstPartMs: 300, idleMs: 50 });
    expect(await outcome(on)).toMatchObject({ tookMs: 300, error: { code: 'timeout' } });
  });

  it('totalMs: a model that never ends', async () => {
    const on = await timed([ticking(() => on, 50, 1000)], { firstPartMs: 100, idleMs: 100, totalMs: 1025 });
    expect(await outcome(on)).toMatchObject({ tookMs: 1025, error: { code: 'timeout' } });
  });

  it('a time-out is retried like any other failure', async () => {
    const on = await bench({ replies: [deaf(), 'ok'], policies: { modelTimeout: { firstPartMs: 500 } } });
    expect(await outcome(on)).toMatchObject({ tookMs: 1500, text: 'ok' });
    expect((await entry(on.conversation, 'model-retry')).reason).toContain('timeout');
  });
});
