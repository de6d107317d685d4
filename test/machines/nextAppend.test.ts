/**
 * The life of appends: every order of up to three steps, answers of the store, and cancels that overtake or give up.
 * Clauses over the acts of each order define the correct result.
 */
import { expect, it } from 'vitest';
import { type Append, type AppendAct, type AppendEvent, nextAppend } from '../../src/runtime/appendQueue.ts';

const STEPS_MAX = 3;
/** The number of cancels that overtake, and of cancels that give up, in one order. */
const CANCELS_MAX = 2;

interface Order {
  readonly events: readonly AppendEvent[];
  readonly appends: readonly Append[];
  readonly acts: readonly AppendAct[];
}

const count = ({ events }: Order, type: AppendEvent['type']): number =>
  events.filter((event) => event.type === type).length;

/** Returns the possible next events. A step occurs only if no append is awaited. */
function eventsAfter(order: Order): AppendEvent[] {
  const added = count(order, 'added');
  const isAwaited = order.appends.some(({ stage }) => stage === 'awaited');
  return [
    ...(added < STEPS_MAX && !isAwaited ? [{ type: 'added' as const, id: added + 1 }] : []),
    ...(order.appends.length > 0 ? ([{ type: 'landed' }, { type: 'refused' }] as const) : []),
    ...(['overtaken', 'givenUp'] as const).flatMap((type) => (count(order, type) < CANCELS_MAX ? [{ type }] : [])),
  ];
}

function* ordersFrom(order: Order): Generator<Order> {
  yield order;
  for (const event of eventsAfter(order)) {
    const { appends, acts } = nextAppend(order.appends, event);
    yield* ordersFrom({ events: [...order.events, event], appends, acts: [...order.acts, ...acts] });
  }
}

const idsOf = (acts: readonly AppendAct[], what: 'begin' | 'lose' | 'giveUp' | 'store'): number[] =>
  acts.flatMap((act) => (act.do === what ? [act.id] : []));
const isRising = (ids: readonly number[]): boolean => ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? id));

/** Returns the faults of an order. */
function faultsOf({ events, appends, acts }: Order): string[] {
  const faults: string[] = [];
  const carried = acts.flatMap((act) => (act.do === 'carry' ? [act.from] : []));
  const ended = [...idsOf(acts, 'begin'), ...idsOf(acts, 'lose'), ...carried];
  const answers = events.filter(({ type }) => type === 'landed' || type === 'refused').length;
  const inStore = idsOf(acts, 'store').length - answers;
  const added = events.filter(({ type }) => type === 'added').length;
  if (inStore !== Math.min(1, appends.length)) faults.push(`${inStore} appends are in the store`);
  if (new Set(ended).size !== ended.length) faults.push('an append ended twice');
  if (ended.length + appends.length !== added) faults.push('an append has no end and is not in the list');
  for (const what of ['begin', 'store', 'lose', 'giveUp'] as const)
    if (!isRising(idsOf(acts, what))) faults.push(`${what} does not keep the order of the steps`);
  const awaited = appends.filter(({ stage }) => stage === 'awaited');
  if (awaited.length > 1 || (awaited[0] && awaited[0] !== appends.at(-1)))
    faults.push('steps overtook a blocking append');
  // The failure of an append that nobody overtook is the next step, and later steps continue after that one.
  const losses = acts.filter((act) => act.do === 'lose' && act.isNext).length;
  const continued = acts.filter((act) => act.do === 'continue').length + losses;
  if (continued !== added - awaited.length)
    faults.push(`later steps continued ${continued} times after ${added} steps`);
  // A carrier is stored with the entries of all refused appends before it.
  for (const { carried: contents } of appends)
    if (!contents.every((id) => carried.includes(id))) faults.push('an append contains entries that were not refused');
  return faults;
}

it('B02, B03: in every order of three appends each has one end, in order, and later steps continue once for each', () => {
  const found: string[] = [];
  let orders = 0;
  for (const order of ordersFrom({ events: [], appends: [], acts: [] })) {
    orders += 1;
    for (const fault of faultsOf(order)) found.push(`${fault}: ${order.events.map(({ type }) => type).join(' ')}`);
    if (found.length > 5) break;
  }
  expect(found).toEqual([]);
  expect(orders).toBeGreaterThan(5_000);
});

it('a refused append is stored with the next one, and only the last one of the queue is lost', () => {
  const events: AppendEvent[] = [
    { type: 'added', id: 1 },
    { type: 'overtaken' },
    { type: 'added', id: 2 },
    { type: 'refused' },
    { type: 'refused' },
  ];
  const acts: AppendAct[] = [];
  let appends: readonly Append[] = [];
  for (const event of events) {
    const next = nextAppend(appends, event);
    appends = next.appends;
    acts.push(...next.acts);
  }
  expect(appends).toEqual([]);
  expect(acts).toEqual([
    { do: 'store', id: 1, carries: false },
    { do: 'continue' },
    { do: 'carry', from: 1, to: 2 },
    { do: 'store', id: 2, carries: true },
    { do: 'lose', id: 2, isNext: false },
    { do: 'continue' },
  ]);
});

it.each(['landed', 'refused', 'overtaken', 'givenUp'] as const)('without an append, "%s" changes nothing', (type) => {
  expect(nextAppend([], { type })).toEqual({ appends: [], acts: [] });
});
