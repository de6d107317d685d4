/** The recording and the replaying journal, each around a scripted journal. */
import { describe, expect, it } from 'vitest';
import type { Completion, Delivery, Journal, NewEntry } from '../../machines/internal.ts';
import { RunchartError } from '../../src/index.ts';
import { type RecordedDelivery, recordingJournal, replayingJournal } from '../../src/journals/index.ts';

type Append = Journal['append'];
const entries = (text: string): readonly NewEntry[] => [{ type: 'diagnostic', runId: null, code: text }];
const delivery = (id: string): Delivery => ({ at: 5, completion: { type: 'timer.elapsed', id } });

/** A journal with scripted appends, inside a recording journal. */
function journals(appends: readonly Append[] = [], deliveries: Delivery[] = []) {
  const calls: unknown[][] = [];
  let appended = 0;
  const inner: Journal = {
    start: (...args) => void calls.push(['start', ...args]),
    drop: (...args) => void calls.push(['drop', ...args]),
    put: (...args) => void calls.push(['put', ...args]),
    bell: (...args) => void calls.push(['bell', ...args]),
    take: () => deliveries.shift(),
    append: (...args) => {
      calls.push(['append', ...args]);
      appended += 1;
      return appends[appended - 1]?.(...args);
    },
  };
  const lines: RecordedDelivery[] = [];
  const ids = new Set<string>();
  const sink = (line: RecordedDelivery, id: string): void => {
    lines.push(line);
    ids.add(id);
  };
  return { journal: recordingJournal(sink)(inner, 'of this one'), calls, lines, ids };
}

describe('a recording journal', () => {
  it('forwards every call with its arguments, and returns the answer', async () => {
    const stored = Promise.resolve();
    const delivered = delivery('t');
    const { journal, calls, ids } = journals([() => undefined, () => stored], [delivered]);
    const request = { kind: 'timer', id: 't', ms: 5 } as const;
    const completion = { type: 'note', entries: [] } as const;
    const ring = (): void => undefined;
    journal.bell(ring);
    journal.start(request);
    journal.drop('t/');
    journal.put(completion);
    expect(journal.append(entries('a'), 1, false)).toBeUndefined();
    await expect(journal.append(entries('b'), 2, true)).resolves.toBeUndefined();
    expect(calls).toEqual([
      ['bell', ring],
      ['start', request],
      ['drop', 't/'],
      ['put', completion],
      ['append', entries('a'), 1, false],
      ['append', entries('b'), 2, true],
    ]);
    expect(journal.take()).toBe(delivered);
    expect(journal.take()).toBeUndefined();
    expect([...ids]).toEqual(['of this one']);
  });

  it('writes the times of appends before the first delivery, and of none after it', () => {
    const { journal, lines } = journals([], [delivery('t')]);
    journal.append(entries('a'), 7, false);
    journal.append(entries('b'), 8, false);
    journal.take();
    journal.append(entries('c'), 9, false);
    expect(lines).toEqual([
      { kind: 'opened', at: 7 },
      { kind: 'opened', at: 8 },
      { kind: 'delivery', ...delivery('t') },
    ]);
  });

  const gone = Object.assign(new Error('gone'), { code: 'ENOSPC' });
  it.each([
    ['an error without a code', new Error('gone'), { code: 'store', message: 'gone' }],
    ['an error of the system', gone, { code: 'ENOSPC', message: 'gone' }],
    [
      'an error whose code is a number',
      Object.assign(new Error('gone'), { code: 28 }),
      { code: 'store', message: 'gone' },
    ],
    [
      'an error of the library',
      new RunchartError('store_conflict', 'gone'),
      { code: 'store_conflict', message: 'gone' },
    ],
    ['no error', 'gone', { code: 'store', message: 'gone' }],
  ])('writes a failed append, and fails as it did: %s', async (_, thrown, error) => {
    const fail = (): never => {
      throw thrown;
    };
    const { journal, lines } = journals([fail, () => Promise.reject(thrown), () => undefined], [delivery('t')]);
    journal.take();
    const failed = (act: () => void | Promise<void>) =>
      Promise.resolve()
        .then(act)
        .catch((reason) => ({ reason }));
    expect(await failed(() => journal.append(entries('a'), 1, false))).toEqual({ reason: thrown });
    expect(await failed(() => journal.append(entries('b'), 2, true))).toEqual({ reason: thrown });
    expect(lines.slice(1)).toEqual([
      { kind: 'failed', append: 0, error },
      { kind: 'carried', append: 0 },
      { kind: 'waiting', append: 1 },
      { kind: 'failed', append: 1, error },
    ]);
  });

  it('writes `landed` after the append is durable, and the append that a failure overtook', async () => {
    let land = (): void => undefined;
    const waiting = new Promise<void>((resolve) => {
      land = resolve;
    });
    const { journal, lines } = journals([() => undefined, () => waiting]);
    const [first, second] = [entries('a'), entries('b')];
    journal.append(first, 1, false);
    const pending = journal.append(second, 2, false);
    const lost = (lostEntries: readonly NewEntry[]): Completion => ({
      type: 'append.failed',
      error: { code: 'store', message: '' },
      lost: lostEntries,
    });
    for (const lostEntries of [second, entries('b'), []]) journal.put(lost(lostEntries));
    const before = lines.slice(2);
    land();
    await pending;
    expect(before).toEqual([
      { kind: 'waiting', append: 1 },
      { kind: 'overtaken', append: 1 },
    ]);
    expect(lines.slice(4)).toEqual([{ kind: 'landed', append: 1 }]);
  });

  it('writes copies: a later change of a delivery does not change the line, nor the reverse', () => {
    const event = { type: 'send', content: ['a'] };
    const delivered: Delivery = { at: 5, completion: { type: 'act', event } };
    const { journal, lines } = journals([], [delivered]);
    journal.take();
    event.content.push('b');
    expect(lines).toEqual([
      { kind: 'delivery', at: 5, completion: { type: 'act', event: { type: 'send', content: ['a'] } } },
    ]);
    Object.assign(lines[0] ?? {}, { completion: null });
    expect(delivered.completion).toEqual({ type: 'act', event });
  });
});

describe('a replaying journal', () => {
  const note = (at: number): Delivery => ({ at, completion: { type: 'note', entries: [] } });
  const delivered = (at: number): RecordedDelivery => ({ kind: 'delivery', ...note(at) });
  /** Plays the steps: a number is an append at that time, `take` takes the next delivery. Returns the stored entries in order. */
  function stored(recording: readonly RecordedDelivery[], play: readonly (number | 'take')[]): string[] {
    const { journal: _, calls } = journals();
    const inner: Journal = {
      ...({} as Journal),
      append: (appended, at) =>
        void calls.push([appended.map((each) => ('code' in each ? each.code : '')).join('+'), at]),
    };
    const journal: Journal = replayingJournal(recording)(inner);
    for (const [index, step] of play.entries()) {
      if (step === 'take') journal.take();
      else
        try {
          void journal.append(entries(`${index}`), step, false);
        } catch (error) {
          calls.push(['failed', (error as RunchartError).code]);
        }
    }
    return calls.map((call) => call.join(' '));
  }
  const error = { code: 'ENOSPC', message: 'gone' };

  it.each<[string, RecordedDelivery[], (number | 'take')[], string[]]>([
    ['at the time that was recorded for the opening', [{ kind: 'opened', at: 3 }], [9], ['0 3']],
    ['at the time of its delivery', [{ kind: 'opened', at: 3 }, delivered(5)], [9, 'take', 5], ['0 3', '2 5']],
    ['at its own time where none was recorded', [delivered(5)], [9, 'take', 5], ['0 9', '2 5']],
    [
      'once it has landed',
      [{ kind: 'waiting', append: 0 }, delivered(1), { kind: 'landed', append: 0 }],
      [1, 'take', 'take'],
      ['0 1'],
    ],
    ['never, where it has not', [{ kind: 'waiting', append: 0 }, delivered(1)], [1, 'take', 'take'], []],
    [
      'at once again after one that had to wait',
      [{ kind: 'waiting', append: 0 }, delivered(1), { kind: 'landed', append: 0 }, delivered(2)],
      [1, 'take', 'take', 2],
      ['0 1', '3 2'],
    ],
    [
      'after the one before it, which waits',
      [{ kind: 'waiting', append: 0 }, delivered(1), { kind: 'landed', append: 0 }, { kind: 'landed', append: 1 }],
      [1, 'take', 2, 'take'],
      ['0 1', '2 2'],
    ],
    [
      'never, where it failed',
      [{ kind: 'failed', append: 0, error }, delivered(1)],
      [1, 'take', 1],
      ['failed ENOSPC', '2 1'],
    ],
    [
      'with the next one, which carries it, and with that one alone',
      [{ kind: 'carried', append: 0 }, { kind: 'failed', append: 0, error }, delivered(1)],
      [1, 2, 3],
      ['0+1 2', '2 3'],
    ],
  ])('stores an append %s', (_, recording, play, expected) => {
    expect(stored(recording, play)).toEqual(expected);
  });

  it('starts, drops and rings nothing, reports the end of a run, and stops at an answer without a request', () => {
    const { journal: _, calls } = journals();
    const inner = { start: (...args: unknown[]) => void calls.push(['start', ...args]) } as unknown as Journal;
    const done = (id: string): RecordedDelivery => ({ kind: 'delivery', ...delivery(id) });
    const replaying = replayingJournal([done('a'), done('b'), done('a')])(inner);
    const journal: Journal = replaying;
    const ended = { kind: 'ended', id: 'e' } as never;
    journal.start({ kind: 'timer', id: 'a', ms: 1 });
    journal.start(ended);
    journal.drop('');
    journal.put({ type: 'note', entries: [] });
    journal.bell(() => calls.push(['rang']));
    expect(calls).toEqual([['start', ended]]);
    expect([journal.take(), replaying.strayed]).toEqual([delivery('a'), undefined]);
    expect([journal.take(), replaying.strayed]).toEqual([undefined, 'b']);
    expect(journal.take()).toBeUndefined();
  });
});
