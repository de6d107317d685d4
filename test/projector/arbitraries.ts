/**
 * Random logs for the projector's properties. Invariant: there are few ids and all types, so that events affect each
 * other. `anyEntry` also makes entries that no backend sends.
 */
import fc from 'fast-check';
import { A, C, decided, queued, R, reply, S, stamped, started, suspendedCall, T, U } from './events.ts';

const messageId = fc.constantFrom('m1', 'm2', 'm3', 'm4', 'm5');
const callId = fc.constantFrom('c1', 'c2', 'c3', 'c4', 'c5', 'c6');
const word = fc.constantFrom('', 'a', 'b', 'c');
const toolName = fc.constantFrom('read', 'LS', 'grep', 'write', 'edit', 'bash', 'task', '__proto__');
const outcome = fc.constantFrom('succeeded', 'failed', 'cancelled', 'unknown' as const);

const message = fc
  .tuple(messageId, fc.constantFrom(undefined, 'direct', 'steer', 'followUp' as const))
  .map(([id, kind]) => U(id, kind));
const text = fc.tuple(fc.boolean(), word).map(([reasons, words]) => (reasons ? R(words) : A(words)));
const call = fc
  .tuple(callId, toolName, fc.constantFrom(undefined, 'bash-group' as const))
  .map(([id, name, group]) => C(id, name, { id }, group));
const result = fc.tuple(callId, word, outcome).map(([id, words, how]) => T(id, words, how));
const stop = fc.constantFrom('completed', 'interrupted', 'error' as const).map((reason) => S(reason));

export const wireEvent = fc.oneof(
  { weight: 4, arbitrary: message },
  { weight: 4, arbitrary: text },
  { weight: 5, arbitrary: call },
  { weight: 5, arbitrary: result },
  { weight: 2, arbitrary: stop },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.oneof(text, call), { maxLength: 4 })
      .map((outputs) => ({ type: 'agent-output' as const, items: outputs.map(({ item }) => item) })),
  },
);

const how = fc.constantFrom({ ran: { a: 1 } }, { ran: 'yes' }, { didNotRun: true }, { retry: true });
const suspension = fc.constantFrom(1, 2);
const by = fc.constantFrom({}, { by: 'ada' }, { by: 'bob' });
/** The entries of a log about a call before its result. */
export const callRecord = fc.oneof(
  fc.tuple(callId, fc.constantFrom({}, { args: { b: 1 } })).map(([id, args]) => started(id, args)),
  fc.tuple(callId, suspension).map(([id, number]) => suspendedCall(id, number)),
  fc.tuple(callId, suspension, by).map(([id, number, who]) => decided(id, number, who)),
);
const runtimeEntry = fc.oneof(
  fc.array(callId, { maxLength: 3 }).map((waiting) => ({ type: 'run-suspended', waiting })),
  fc.constantFrom('r1', 'r2').map((of) => ({ type: 'run-resumed', of })),
  fc.tuple(messageId, fc.constantFrom('steer', 'followUp' as const)).map(([id, kind]) => queued(id, kind)),
  messageId.map((id) => ({ type: 'message-returned', messageId: id, why: 'closed' })),
  fc.tuple(callId, how).map(([id, settlement]) => ({ type: 'call-settled', callId: id, how: settlement })),
  callRecord,
  fc.nat(9).map((tokens) => reply(tokens)),
  fc.constantFrom('checkpoint', 'notice', 'no-such-type', 'xstate.init').map((type) => ({ type })),
);

export const anyEvent = fc.oneof({ weight: 5, arbitrary: wireEvent }, { weight: 2, arbitrary: runtimeEntry });

/** Random events, most of them out of place. */
export const events = fc.array(anyEvent, { maxLength: 60 });
/** The same in a log of two runs. */
export const log = fc
  .tuple(events, events)
  .map(([first, second]) => [...stamped(first, 'r1'), ...stamped(second, 'r2', first.length)]);

/**
 * Any value, also one that resembles an entry: fields of a wrong type, missing fields, or fields of an unusual
 * prototype.
 */
export const wild = fc.oneof(
  { weight: 2, arbitrary: fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }) },
  { weight: 1, arbitrary: fc.jsonValue() },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        anyEvent,
        fc.constantFrom('type', 'kind', 'content', 'item', 'items', 'callId', 'seq', 'how'),
        fc.anything(),
      )
      .map(([event, field, value]) => ({ ...event, [field]: value })),
  },
);

/** An order that differs from the list's by neighbours only, so that the window is never full. */
export const nearlyOrdered = <E>(list: readonly E[], swaps: readonly number[]): E[] => {
  const entries = [...list];
  for (const swap of swaps) {
    const at = entries.length < 2 ? 0 : swap % (entries.length - 1);
    entries.splice(at, 2, ...entries.slice(at, at + 2).reverse());
  }
  return entries;
};
