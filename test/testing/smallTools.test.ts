/** Small tools of `runchart/testing`: scripted replies, shrunk tapes, unreached parts, faults of messages, and ends of executions. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Message } from '../../machines/internal.ts';
import type { ModelError, ModelPart } from '../../src/index.ts';
import { reportingEnd } from '../../src/testing/executionEnd.ts';
import { neverReached, type SimulationReport, scriptedModel, shrink } from '../../src/testing/index.ts';
import { pairingFaults } from '../../src/testing/pairingFaults.ts';

const request = { system: '', messages: [], tools: [] };

describe('a scripted reply with a delay', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const parts: ModelPart[] = [
    { type: 'text-delta', text: 'a' },
    { type: 'text-delta', text: 'b' },
    { type: 'finish', reason: 'stop' },
  ];

  it.each([0, 50])('waits %i ms before each of its parts', async (delayMs) => {
    const { signal } = new AbortController();
    const read: ModelPart[] = [];
    const reading = (async () => {
      for await (const part of scriptedModel([{ parts, delayMs }]).stream(request, { signal, attempt: 1 }))
        read.push(part);
    })();
    for (const count of [1, 2, 3]) {
      await vi.advanceTimersByTimeAsync(Math.max(0, delayMs - 1));
      if (delayMs > 0) expect(read).toHaveLength(count - 1);
      await vi.advanceTimersByTimeAsync(1);
      if (delayMs > 0) expect(read).toHaveLength(count);
    }
    await reading;
    expect([read, vi.getTimerCount()]).toEqual([parts, 0]);
  });

  it('leaves no listener of its signal after a part, and no timer after an abort, before or during a wait', async () => {
    for (const when of ['before', 'during']) {
      const abort = new AbortController();
      const { signal } = abort;
      const added = vi.spyOn(signal, 'addEventListener');
      const removed = vi.spyOn(signal, 'removeEventListener');
      if (when === 'before') abort.abort(new Error('left'));
      const stream = scriptedModel([{ parts, delayMs: 50 }]).stream(request, { signal, attempt: 1 });
      const steps = (stream as AsyncIterable<ModelPart>)[Symbol.asyncIterator]();
      if (when === 'during') {
        const first = steps.next();
        await vi.advanceTimersByTimeAsync(50);
        expect((await first).value).toEqual(parts[0]);
        expect(removed.mock.calls.length).toBe(added.mock.calls.length);
      }
      const next = expect(steps.next()).rejects.toThrow('left');
      if (when === 'during') abort.abort(new Error('left'));
      await next;
      expect(vi.getTimerCount()).toBe(0);
    }
  });

  it('is checked for each type of part, with each of its required fields', () => {
    const good: ModelPart[] = [
      { type: 'text-delta', text: '' },
      { type: 'reasoning-delta', text: '' },
      { type: 'tool-call-delta', index: 0, text: '' },
      { type: 'tool-call', callId: '', name: '', args: '' },
      { type: 'finish', reason: 'stop' },
      { type: 'diagnostic', code: 'x' },
      { type: 'refusal' },
    ];
    const needed: Record<string, string[]> = {
      ...{ 'text-delta': ['text'], 'reasoning-delta': ['text'], 'tool-call-delta': ['text'] },
      ...{ 'tool-call': ['callId', 'name', 'args'], finish: ['reason'], diagnostic: ['code'], refusal: [] },
    };
    for (const part of good) {
      expect(scriptedModel([{ parts: [part] }]).remaining).toBe(1);
      for (const field of needed[part.type] ?? [])
        for (const value of [undefined, 5])
          expect(() => scriptedModel([{ parts: [{ ...part, [field]: value } as never] }])).toThrow(
            `parts[0].${field} must be a string`,
          );
    }
  });

  it.each([
    [-1, /delayMs must be a number of at least 0/],
    ['5', /delayMs must be a number/],
  ])('refuses a delay of %s', (delayMs, words) => {
    expect(() => scriptedModel([{ parts, delayMs: delayMs as number }])).toThrow(words);
  });

  it('refuses a window below one token', () => {
    expect(() => scriptedModel([], { contextWindow: 0 })).toThrow(/contextWindow must be a number of at least 1/);
    expect(scriptedModel([], { contextWindow: 1 }).contextWindow).toBe(1);
  });

  it('reports the number of replies and the request, cut to 200 characters', () => {
    const messages: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'y'.repeat(300) }] }];
    const model = scriptedModel(['one']);
    const ask = () => model.stream({ ...request, messages }, { signal: new AbortController().signal, attempt: 1 });
    ask();
    const error = (() => {
      try {
        return ask();
      } catch (thrown) {
        return thrown as ModelError;
      }
    })() as ModelError;
    expect([error.code, error.retryable, model.calls.length]).toEqual(['unexpected-call', false, 2]);
    expect(error.message).toMatch(/^the script has 1 replies and this is call 2; its last message is .{200}\. Write/);
  });
});

describe('a shrunk tape', () => {
  /** A life that breaks the invariant if its tape contains these numbers in this order. */
  const needing = (...needed: number[]) => {
    const lives: (readonly number[])[] = [];
    const live = async (tape: readonly number[]) => {
      lives.push(tape);
      let at = 0;
      for (const number of tape) if (number === needed[at]) at += 1;
      const violations = [{ invariant: at === needed.length ? 'wanted' : 'other' }];
      return { violations } as unknown as SimulationReport;
    };
    return { live, lives };
  };

  it.each([
    [[7], [1, 2, 7, 3, 4]],
    [
      [7, 9],
      [7, 1, 1, 9],
    ],
    [
      [3, 3, 3],
      [0, 3, 1, 3, 2, 2, 3, 0, 0],
    ],
  ])('is the numbers %j that the violation needs', async (needed, tape) => {
    const { live } = needing(...needed);
    expect(await shrink(live, tape, 'wanted')).toEqual(needed);
  });

  it('stays as it is, without zeros at its end, if nothing simpler breaks the same invariant', async () => {
    const { live } = needing(1, 2);
    expect(await shrink(live, [1, 2, 0, 0], 'other')).not.toContain(2);
    expect(await shrink(async () => ({ violations: [] }) as never, [0, 5, 0, 0], 'wanted')).toEqual([0, 5]);
    expect(await shrink(live, [], 'wanted')).toEqual([]);
  });

  it('needs at most 400 lives, however long it is', async () => {
    const { live, lives } = needing(-1);
    await shrink(
      live,
      Array.from({ length: 5_000 }, (_, at) => at + 1),
      'wanted',
    );
    expect(lives).toHaveLength(400);
  });
});

describe('tools and decisions that no simulation reached', () => {
  const report = (tools: string[], ran: string[], decisions: string[]) => ({
    tools,
    reached: {
      tools: Object.fromEntries(ran.map((name) => [name, 1])),
      decisions: Object.fromEntries(decisions.map((name) => [name, 1])),
    } as never,
  });
  const all = ['asked', 'approve', 'deny'];

  it.each([
    [['a'], ['a'], all, []],
    [['a', 'b'], ['a'], all, ['the tool b never ran in this life']],
    [[], [], [], ['no call waited for a decision in this life']],
    [[], [], ['asked', 'deny'], ['no call that waited was approved in this life']],
    [[], [], ['asked', 'approve'], ['no call that waited was denied in this life']],
    [[], [], ['asked', 'early edit', 'early deny'], []],
    [[], [], ['asked', 'answer', 'deny'], []],
    [
      [],
      [],
      ['asked'],
      ['no call that waited was approved in this life', 'no call that waited was denied in this life'],
    ],
  ])('of the tools %j that ran %j with %j', (tools, ran, decisions, sentences) => {
    expect(neverReached([report(tools, ran, decisions)])).toEqual(sentences);
  });

  it('is counted over all lives', () => {
    const reports = [report(['a', 'b'], ['a'], ['asked', 'approve']), report(['a', 'c'], ['b'], ['deny'])];
    expect(neverReached(reports)).toEqual(['the tool c never ran in 2 lives']);
    expect(neverReached([])).toEqual(['no call waited for a decision in 0 lives']);
  });
});

describe('the faults of messages that a strict provider refuses', () => {
  const user: Message = { role: 'user', content: [{ type: 'text', text: 'go' }] };
  const calls = (...ids: string[]) =>
    ({ role: 'assistant', content: [], toolCalls: ids.map((callId) => ({ callId, name: 'a', args: {} })) }) as Message;
  const result = (callId: string) => ({ role: 'tool', callId, content: [] }) as unknown as Message;
  const assistant = { role: 'assistant', content: [{ type: 'text', text: 'x' }], toolCalls: [] } as Message;

  it.each<[string, Message[], string[]]>([
    ['none', [user, calls('1', '2'), result('1'), result('2'), user], []],
    [
      'a result before its turn',
      [user, calls('1', '2'), result('2'), result('1')],
      ['1 has no result in its place', 'a result of 1 stands without its call'],
    ],
    ['a missing result', [user, calls('1'), user], ['1 has no result in its place']],
    ['a result alone', [result('9'), user], ['a result of 9 stands without its call']],
    ['the same id twice', [user, calls('1'), result('1'), calls('1'), result('1')], ['the call id 1 is there twice']],
    ['an empty reply', [user, calls(), user], ['an assistant message is empty']],
    ['a reply at the end', [user, assistant], ['the model has the last word']],
    ['no messages', [], []],
  ])('%s', (_, messages, faults) => expect(pairingFaults(messages)).toEqual(faults));
});

describe('the end of an execution', () => {
  const error = new Error('no');
  async function ends(make: () => unknown, use: (value: never) => unknown) {
    const reported: unknown[] = [];
    const value = reportingEnd(make(), (failure) => void reported.push(failure?.error ?? 'well'));
    await Promise.resolve(use(value as never)).catch(() => undefined);
    return reported;
  }
  const all = async (steps: AsyncIterable<unknown> | Iterable<unknown>) => {
    for await (const _ of steps);
  };
  const first = async (steps: AsyncIterable<unknown> | Iterable<unknown>) => {
    for await (const _ of steps) break;
  };
  function* two() {
    yield 1;
    yield 2;
  }
  async function* twoLater() {
    yield 1;
    yield 2;
  }
  function* broken() {
    yield 1;
    throw error;
  }
  async function* brokenLater() {
    yield 1;
    throw error;
  }
  const iterable = { [Symbol.asyncIterator]: twoLater };
  type Settle = (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void;
  const foreign = (then: Settle): unknown => ({ then });
  const twice: Settle = (resolve, reject) => {
    resolve(5);
    reject(error);
  };
  const thrown: Settle = () => {
    throw error;
  };

  it.each<[string, () => unknown, (value: never) => unknown, unknown[]]>([
    ['a value', () => 5, (value) => value, ['well']],
    ['a list', () => [1], (value) => value, ['well']],
    ['a map', () => new Map(), (value) => value, ['well']],
    ['a promise', async () => 5, (value) => value, ['well']],
    ['a rejection', () => Promise.reject(error), (value) => value, [error]],
    ['a promise of another library', () => foreign((resolve) => resolve(5)), (value) => value, ['well']],
    ['a rejection of another library', () => foreign((_, reject) => reject(error)), (value) => value, [error]],
    ['a promise of another library that answers twice', () => foreign(twice), (value) => value, ['well']],
    ['a promise of another library that throws', () => foreign(thrown), (value) => value, [error]],
    ['a promise of another library that is not settled', () => foreign(() => undefined), () => undefined, []],
    ['a generator that is read', two, all, ['well']],
    ['a generator that is left', two, first, ['well']],
    ['a generator that throws', broken, all, [error]],
    ['an async generator that is read', twoLater, all, ['well']],
    ['an async generator that is left', twoLater, first, ['well']],
    ['an async generator that throws', brokenLater, all, [error]],
    ['an async iterable that is read', () => iterable, all, ['well']],
    [
      'a promise of a generator that is read',
      async () => two(),
      async (value: Promise<Iterable<unknown>>) => all(await value),
      ['well'],
    ],
    ['a generator that is not read', two, () => undefined, []],
  ])('of %s is reported once', async (_, make, use, expected) => expect(await ends(make, use)).toEqual(expected));
});
