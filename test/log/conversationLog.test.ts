/**
 * The log of a conversation on every kind of store: the order in which entries are folded, announced and streamed, and the state after
 * a failed append, a second close and a subscriber that throws.
 */
import { map, take } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createTranscript, emptyLogState, type LogEntry, type NewEntry } from '../../machines/internal.ts';
import { ConversationLog, emptyFolds, foldEntry, foldsOf, withoutRedaction } from '../../src/log/conversationLog.ts';
import { guarded } from '../../src/log/isolatedObservable.ts';
import { redactor } from '../../src/log/redact.ts';
import type { LogHandle } from '../../src/stores/logStore.ts';

const notice = (text: string): NewEntry => ({ runId: null, type: 'notice', code: 'x', text });
const textOf = (entry: LogEntry): string => ('text' in entry ? String(entry.text) : entry.type);

/** A handle that stores at once, or on the test's request. */
function handleOf(kind: 'at once' | 'later') {
  const stored: LogEntry[] = [];
  const appends: { entries: readonly LogEntry[]; resolve(): void; reject(error: Error): void }[] = [];
  let closes = 0;
  let refusal: Error | undefined;
  const appendNow = (entries: readonly LogEntry[], expectedSeq: number): void => {
    expect(expectedSeq).toBe(stored.length);
    if (refusal) throw refusal;
    stored.push(...entries);
  };
  const append = (entries: readonly LogEntry[], expectedSeq: number): Promise<void> =>
    new Promise((resolve, reject) => {
      expect(expectedSeq).toBe(stored.length);
      appends.push({
        entries,
        reject,
        resolve: () => {
          stored.push(...entries);
          resolve();
        },
      });
    });
  const handle = {
    append,
    ...(kind === 'at once' && { appendNow }),
    close: async () => {
      closes += 1;
    },
  } as unknown as LogHandle;
  return {
    ...{ handle, stored, appends, closes: () => closes },
    refuse: (error: Error | undefined) => {
      refusal = error;
    },
  };
}

function logOn(handle: LogHandle, redact = withoutRedaction) {
  const [logState, transcript] = [emptyLogState(), createTranscript()];
  const log = new ConversationLog({ id: 'c', handle, entries: [], redact, logState, transcript });
  const happened: string[] = [];
  log.listen((entry) => void happened.push(`fold ${textOf(entry)}`));
  log.watch((entry) => void happened.push(`show ${textOf(entry)}`));
  return { log, happened };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('an append', () => {
  it('to a store that works at once is folded and shown when it returns', () => {
    const { handle, stored } = handleOf('at once');
    const { log, happened } = logOn(handle);
    expect(log.append([notice('a'), notice('b')], 5)).toBeUndefined();
    expect(happened).toEqual(['fold a', 'fold b', 'show a', 'show b']);
    expect(stored).toEqual([
      { seq: 0, at: 5, conversationId: 'c', ...notice('a') },
      { seq: 1, at: 5, conversationId: 'c', ...notice('b') },
    ]);
    expect(Object.isFrozen(stored[0])).toBe(true);
    expect([log.hasPendingAppend, log.settledAppends]).toEqual([false, 0]);
    // The step of a chart: folded at once, shown when its requests have started.
    log.follow([notice('c')], 6);
    expect(happened.slice(4)).toEqual(['fold c']);
    log.announce();
    log.announce();
    expect(happened.slice(4)).toEqual(['fold c', 'show c']);
  });

  it('to another store is neither folded nor shown before it is durable', async () => {
    const { handle, appends } = handleOf('later');
    const { log, happened } = logOn(handle);
    const pending = log.append([notice('a')], 5);
    expect(appends).toHaveLength(0);
    await turn();
    expect([happened, log.entries, log.hasPendingAppend, log.settledAppends]).toEqual([[], [], true, 0]);
    appends[0]?.resolve();
    await pending;
    expect([happened, log.hasPendingAppend, log.settledAppends]).toEqual([['fold a', 'show a'], false, 1]);
    const following = log.follow([notice('b')], 6);
    await turn();
    appends[1]?.resolve();
    await following;
    expect(happened.slice(2)).toEqual([]);
    log.fold();
    log.fold();
    log.announce();
    expect(happened.slice(2)).toEqual(['fold b', 'show b']);
    expect(log.entries.map(({ seq, at }) => [seq, at])).toEqual([
      [0, 5],
      [1, 6],
    ]);
  });

  it.each(['at once', 'later'] as const)('of nothing asks no store (%s)', async (kind) => {
    const { handle, stored, appends } = handleOf(kind);
    const { log } = logOn(handle);
    expect([log.append([], 1), log.follow([], 1)]).toEqual([undefined, undefined]);
    await log.settled();
    expect([stored, appends, log.settledAppends]).toEqual([[], [], 0]);
  });

  it.each(['at once', 'later'] as const)(
    'that fails leaves no trace, and the next one takes its place (%s)',
    async (kind) => {
      const { handle, appends, refuse, stored } = handleOf(kind);
      const { log, happened } = logOn(handle);
      const append = async (text: string, isStored: boolean): Promise<unknown> => {
        refuse(isStored ? undefined : new Error('full'));
        const begin = async (): Promise<void> => log.append([notice(text)], 1);
        const pending = begin().catch((error: Error) => error.message);
        await turn();
        if (kind === 'later') {
          const { resolve, reject } = appends.at(-1) ?? {};
          if (isStored) resolve?.();
          else reject?.(new Error('full'));
        }
        return pending;
      };
      expect([await append('a', true), await append('b', false), await append('c', true)]).toEqual([
        ...[undefined, 'full', undefined],
      ]);
      await log.settled();
      expect(happened).toEqual(['fold a', 'show a', 'fold c', 'show c']);
      expect(log.entries.map(({ seq }) => seq)).toEqual([0, 1]);
      expect(stored).toEqual(log.entries);
      expect([log.hasPendingAppend, log.settledAppends]).toEqual([false, kind === 'later' ? 3 : 0]);
    },
  );

  it('has what a cancelled call has produced, once, and not that of another outcome', () => {
    const { handle, stored } = handleOf('at once');
    const { log } = logOn(handle);
    const result = (callId: string, code: string): NewEntry =>
      ({
        ...{ runId: 'r', type: 'tool-result', callId, code, outcome: 'failed', isError: true },
        content: [{ type: 'text', text: 'ended' }],
      }) as never;
    for (const id of ['a', 'b', 'c']) log.partials.set(id, () => (id === 'c' ? '' : `so far of ${id}`));
    log.append([result('a', 'cancelled'), result('b', 'error'), result('c', 'cancelled'), result('d', 'cancelled')], 1);
    log.append([result('a', 'cancelled')], 1);
    const texts = stored.map((entry) =>
      entry.type === 'tool-result' ? entry.content.map((part) => 'text' in part && part.text) : [],
    );
    expect(texts).toEqual([['ended', 'so far of a'], ['ended'], ['ended'], ['ended'], ['ended']]);
    expect(log.partials.size).toBe(0);
  });

  it('is stored, folded and shown without secrets', () => {
    const { handle, stored } = handleOf('at once');
    const { log, happened } = logOn(handle, redactor(['s3cret']));
    log.append([notice('a s3cret')], 1);
    expect([happened, stored.map(textOf)]).toEqual([['fold a [redacted]', 'show a [redacted]'], ['a [redacted]']]);
  });
});

describe('a stream of entries', () => {
  const begun = () => {
    const { handle, closes } = handleOf('at once');
    const { log } = logOn(handle);
    log.append([notice('a'), notice('b'), notice('c')], 1);
    const errors: unknown[] = [];
    const read = (from: number): string[] => {
      const texts: string[] = [];
      log
        .stream(from, (error) => void errors.push(error))
        .subscribe({
          next: (entry) => void texts.push(textOf(entry)),
          complete: () => void texts.push('end'),
        });
      return texts;
    };
    return { log, read, errors, closes };
  };

  it.each<[number, string[]]>([
    [0, ['a', 'b', 'c', 'd', 'e', 'end']],
    [-1, ['a', 'b', 'c', 'd', 'e', 'end']],
    [Number.NaN, ['a', 'b', 'c', 'd', 'e', 'end']],
    [0.5, ['b', 'c', 'd', 'e', 'end']],
    [2, ['c', 'd', 'e', 'end']],
    [3, ['d', 'e', 'end']],
    [4, ['e', 'end']],
    [5, ['end']],
    [Number.POSITIVE_INFINITY, ['end']],
  ])('from %d has each entry once, stored ones first, and ends with the log', async (from, expected) => {
    const { log, read } = begun();
    const [first, second] = [read(from), read(from)];
    log.append([notice('d')], 2);
    log.append([notice('e')], 2);
    await log.close();
    log.append([notice('f')], 3);
    expect(first).toEqual(expected);
    expect(second).toEqual(expected);
  });

  it('has an entry once that was folded, but not yet shown, when the stream began', () => {
    const { log, read } = begun();
    log.follow([notice('d')], 2);
    const [whole, later] = [read(0), read(4)];
    expect(whole).toEqual(['a', 'b', 'c', 'd']);
    log.announce();
    log.append([notice('e')], 2);
    expect([whole, later]).toEqual([['a', 'b', 'c', 'd', 'e'], ['e']]);
  });

  it('shows what a subscriber appends after what came before it, to every subscriber', () => {
    const { log, read } = begun();
    const before = read(3);
    log
      .stream(3, () => undefined)
      .subscribe((entry) => {
        if (textOf(entry) === 'd') log.follow([notice('caused')], 2);
      });
    const after = read(3);
    log.append([notice('d'), notice('e')], 2);
    for (const texts of [before, after]) expect(texts).toEqual(['d', 'e', 'caused']);
  });

  it('stops in the middle of the stored entries where its subscriber leaves', () => {
    const { log } = begun();
    const texts: string[] = [];
    let isDone = false;
    log
      .stream(0, () => undefined)
      .pipe(take(2))
      .subscribe({
        next: (entry) => void texts.push(textOf(entry)),
        complete: () => {
          isDone = true;
        },
      });
    log.append([notice('d')], 2);
    expect([isDone, texts]).toEqual([true, ['a', 'b']]);
  });

  it('closes the store each time it is asked to', async () => {
    const { log, closes } = begun();
    await Promise.all([log.close(), log.close()]);
    expect(closes()).toBe(2);
  });
});

describe('a careless subscriber', () => {
  /** A source of numbers, with a careful subscriber before and after. */
  function among(careless: object) {
    const errors: unknown[] = [];
    const subscribers = new Set<{ next(value: number): void; complete(): void; error(error: unknown): void }>();
    const source = guarded<number>(
      (error) => void errors.push(error),
      (subscriber) => {
        subscribers.add(subscriber);
        return () => void subscribers.delete(subscriber);
      },
    );
    const seen: number[][] = [[], []];
    source.subscribe((value) => void seen[0]?.push(value));
    source.subscribe(careless);
    source.subscribe((value) => void seen[1]?.push(value));
    const send = (value: number): void => {
      for (const subscriber of [...subscribers]) subscriber.next(value);
    };
    return { errors, seen, send, subscribers, source };
  }

  it.each<[string, (calls: number[]) => object]>([
    [
      'throws',
      (calls) => ({
        next: (value: number) => {
          calls.push(value);
          throw new Error(`${value}`);
        },
      }),
    ],
    [
      'rejects',
      (calls) => ({
        next: async (value: number) => {
          calls.push(value);
          throw new Error(`${value}`);
        },
      }),
    ],
  ])('that %s is reported each time, and is detached after the third', async (_, make) => {
    const calls: number[] = [];
    const { errors, seen, send, subscribers } = among(make(calls));
    for (const value of [1, 2, 3, 4, 5]) {
      send(value);
      await turn();
    }
    expect(calls.slice(0, 3)).toEqual([1, 2, 3]);
    // A rejection is known only after the value, so one more may come.
    expect(calls.length).toBeLessThanOrEqual(4);
    expect(errors.map(String)).toEqual(calls.map((value) => `Error: ${value}`));
    expect(seen).toEqual([
      [1, 2, 3, 4, 5],
      [1, 2, 3, 4, 5],
    ]);
    expect(subscribers.size).toBe(2);
  });

  it('that fails twice stays, also when it succeeds in between', () => {
    const calls: number[] = [];
    const careless = (value: number): void => {
      calls.push(value);
      if (value === 1 || value === 3) throw new Error('no');
    };
    const { errors, send, subscribers } = among({ next: careless });
    for (const value of [1, 2, 3, 4]) send(value);
    expect([calls, errors.length, subscribers.size]).toEqual([[1, 2, 3, 4], 2, 3]);
  });

  it('after an operator is reported and detached in the same way', () => {
    const { errors, send, subscribers, source } = among({ next: () => undefined });
    let calls = 0;
    source.pipe(map((value) => value)).subscribe(() => {
      calls += 1;
      throw new Error('no');
    });
    for (const value of [1, 2, 3, 4]) send(value);
    expect([calls, errors.length, subscribers.size]).toEqual([3, 3, 3]);
  });

  it('at the end, or at a failure that nobody takes, is reported', () => {
    const complete = among({
      complete: () => {
        throw new Error('at the end');
      },
    });
    for (const subscriber of [...complete.subscribers]) subscriber.complete();
    expect(complete.errors.map(String)).toEqual(['Error: at the end']);
    const failing = among({ next: () => undefined });
    for (const subscriber of [...failing.subscribers]) subscriber.error('why');
    expect(failing.errors).toEqual(['why', 'why', 'why']);
    const handled: unknown[] = [];
    const handling = among({ error: (error: unknown) => void handled.push(error) });
    for (const subscriber of [...handling.subscribers]) subscriber.error('why');
    expect([handled, handling.errors]).toEqual([['why'], ['why', 'why']]);
  });
});

it('the folds of a log are the same, entry by entry and at once', () => {
  const { handle, stored } = handleOf('at once');
  const { log } = logOn(handle);
  log.append([notice('a'), notice('b')], 1);
  const folds = emptyFolds();
  for (const entry of stored) foldEntry(folds, entry);
  expect(JSON.stringify(folds.logState)).toBe(JSON.stringify(foldsOf(stored).logState));
});
