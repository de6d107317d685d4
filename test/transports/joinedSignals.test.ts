/** Two live signals that follow each other, in every combination: joined or not, a client adds up the same. */
import { expect, it } from 'vitest';
import type { Live } from '../../src/index.ts';
import { joinedSignal } from '../../src/transports/events/joinedSignal.ts';

const text = (type: 'text-delta' | 'reasoning-delta', more: object = {}): Live => ({
  ...{ type, runId: 'r', text: 'ab' },
  ...more,
});
const input = (more: object = {}): Live => ({ type: 'tool-input-delta', runId: 'r', index: 0, text: '{', ...more });

/** Signals that differ from each other in one field. */
const SIGNALS: readonly Live[] = [
  text('text-delta'),
  text('text-delta', { text: '' }),
  text('text-delta', { runId: 's' }),
  text('text-delta', { path: [] }),
  text('text-delta', { path: ['c1'] }),
  text('text-delta', { path: ['c2'] }),
  text('text-delta', { path: ['c1', 'c2'] }),
  text('reasoning-delta'),
  input(),
  input({ index: 1 }),
  input({ runId: 's' }),
  input({ path: ['c1'] }),
  input({ name: 'f' }),
  input({ name: 'g' }),
  input({ callId: 'c1' }),
  input({ callId: 'c2' }),
  input({ callId: 'c1', name: 'f' }),
  { type: 'reset', runId: 'r' },
  { type: 'status', status: 'idle' },
  { type: 'state', state: {} },
  { type: 'tool-progress', runId: 'r', callId: 'c1', elapsedMs: 1, update: null },
] as Live[];

/** The state of a client after these signals: texts by their place, each with the names that came with its pieces. */
function addedUp(signals: readonly Live[]): object {
  const texts = new Map<string, { text: string; named: string[] }>();
  const others: Live[] = [];
  for (const signal of signals) {
    if (!('text' in signal)) {
      others.push(signal);
      continue;
    }
    const { index, callId, name } = signal as Partial<Extract<Live, { type: 'tool-input-delta' }>>;
    const place = JSON.stringify([signal.path ?? [], signal.runId, signal.type, index ?? null]);
    const joined = texts.get(place) ?? { text: '', named: [] };
    const named = [callId, name].filter((each) => each !== undefined && !joined.named.includes(each)) as string[];
    texts.set(place, { text: joined.text + signal.text, named: [...joined.named, ...named] });
  }
  return { texts: [...texts], others };
}

const isText = (signal: Live): boolean => 'text' in signal;
const placeOf = ({ text: _, callId: _callId, name: _name, ...rest }: { [field: string]: unknown }): string =>
  JSON.stringify({ path: [], ...rest }, ['type', 'runId', 'index', 'path']);
const isNamed = (first: Live, second: Live): boolean =>
  (['callId', 'name'] as const).every((field) => {
    const name = (second as { [field: string]: unknown })[field];
    return name === undefined || name === (first as { [field: string]: unknown })[field];
  });

it('two signals are joined exactly where they belong to one text, and nothing of either is lost', () => {
  for (const first of SIGNALS) {
    for (const second of SIGNALS) {
      const joined = joinedSignal(first, second);
      const belong = isText(first) && isText(second) && placeOf(first as never) === placeOf(second as never);
      expect([first, second, joined !== undefined]).toEqual([first, second, belong && isNamed(first, second)]);
      if (joined) expect(addedUp([joined])).toEqual(addedUp([first, second]));
    }
  }
});

it('joining changes neither of the two signals', () => {
  const [first, second] = [Object.freeze(text('text-delta')), Object.freeze(text('text-delta'))];
  expect(joinedSignal(first, second)).toEqual(text('text-delta', { text: 'abab' }));
  expect([first, second]).toEqual([text('text-delta'), text('text-delta')]);
});
