/**
 * The rules of every chart, at every step of every path. Invariant: a rule reads the entries, requests, running
 * children and events, but never the decisions of a chart.
 */
import type { AnyMachineSnapshot } from 'xstate';
import type { LogEntry, RunChartOutput, RunInput } from '../../machines/index.ts';
import type { Invariant } from '../../src/testing/chartPaths/drive.ts';
import type { Seen } from '../../src/testing/chartPaths/drivenChart.ts';

export function hold(condition: boolean, message: string): void {
  if (!condition) throw new Error(`invariant broken: ${message}`);
}
type Of<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;
export const entriesOf = <T extends LogEntry['type']>(entries: readonly LogEntry[], type: T): Of<T>[] =>
  entries.filter((entry): entry is Of<T> => entry.type === type);

const twice = (ids: readonly string[]): string[] => ids.filter((id, index) => ids.indexOf(id) !== index);

const checkpointsCloseTheirStep: Invariant = (_, { journal }) => {
  for (const step of journal.appends) {
    const at = step.findIndex(({ type }) => type === 'checkpoint');
    hold(at < 0 || at === step.length - 1, `a checkpoint is the last entry of its step, not ${at} of ${step.length}`);
  }
};

/** A call that the host wants retried may have one more result for each such settlement. */
const oneResultACall: Invariant = (_, { journal }) => {
  const ids = entriesOf(journal.entries, 'tool-result').map(({ callId }) => callId);
  const retried = entriesOf(journal.entries, 'call-settled').flatMap(({ callId, how }) =>
    'retry' in how ? [callId] : [],
  );
  const tooMany = twice(ids).filter((id) => timesIn(ids, id) > 1 + timesIn(retried, id));
  hold(tooMany.length === 0, `a call has one result: ${tooMany}`);
};
const timesIn = (ids: readonly string[], id: string): number => ids.filter((each) => each === id).length;

const nothingAskedTwice: Invariant = (_, { journal }) => {
  // The acts of a path have one id.
  const ids = journal.started.filter(({ kind }) => kind !== 'commit' && kind !== 'answer').map(({ id }) => id);
  hold(twice(ids).length === 0, `an effect is asked for once: ${twice(ids)}`);
  for (const id of journal.open.keys()) hold(!journal.dropped.has(id), `${id} was dropped and is asked for again`);
};

/** A call runs after its start is in the log, and starts at most once for each suspension. */
const startedBeforeRun: Invariant = (_, { journal }) => {
  const keys = entriesOf(journal.entries, 'tool-started').map(({ idempotencyKey }) => idempotencyKey);
  hold(twice(keys).length === 0, `a call starts once a suspension: ${twice(keys)}`);
  for (const request of journal.started) {
    if (request.kind === 'tool') hold(keys.includes(request.idempotencyKey), `${request.id} runs unrecorded`);
  }
};

/** Suspensions are numbered from 1, and a call with a result is never suspended again. */
const suspensionsCount: Invariant = (_, { journal }) => {
  const done = new Set<string>();
  const last = new Map<string, number>();
  for (const entry of journal.entries) {
    if (entry.type === 'tool-result') done.add(entry.callId);
    if (entry.type !== 'tool-suspended') continue;
    const before = last.get(entry.callId);
    hold(!done.has(entry.callId), `${entry.callId} was suspended after its result`);
    hold(before === undefined || entry.suspension === before + 1, `${entry.callId} skipped a suspension`);
    last.set(entry.callId, entry.suspension);
  }
};

const runIdsOf = (entries: readonly LogEntry[]): (string | null)[] => [...new Set(entries.map(({ runId }) => runId))];

/**
 * A run begins with its first entry, ends once, and logs nothing after its last checkpoint. A suspended run may be closed
 * later: then its calls get their results, and the cycle its stop.
 */
const oneEndARun: Invariant = (_, { journal }) => {
  for (const runId of runIdsOf(journal.entries)) {
    const own = journal.entries.filter((entry) => entry.runId === runId);
    const types = own.map(({ type }) => type);
    const begin = types.findIndex((type) => type === 'run-started' || type === 'run-resumed');
    hold(begin <= 0, `${runId} begins with ${types[0]}`);
    const ends = types.filter((type) => type === 'run-stop' || type === 'run-suspended').join();
    hold(ENDS.has(ends), `${runId} ends once: ${ends}`);
    const stop = types.indexOf('run-stop');
    const suspended = types.indexOf('run-suspended');
    const behindStop = types.slice(stop + 1).filter((type) => stop >= 0 && !AFTER_THE_END.has(type));
    const behindWait = types.slice(suspended + 1).filter((type) => suspended >= 0 && !CLOSING.has(type));
    hold(
      behindStop.length + behindWait.length === 0,
      `entries of ${runId} after its end: ${[...behindStop, ...behindWait]}`,
    );
  }
};
const ENDS: ReadonlySet<string> = new Set(['', 'run-stop', 'run-suspended', 'run-suspended,run-stop']);
/** Entries of a run that may follow its end: acts of the host, and its checkpoint. */
const AFTER_THE_END: ReadonlySet<LogEntry['type']> = new Set<LogEntry['type']>([
  'checkpoint',
  'decision',
  'call-settled',
  'message-queued',
  'message-returned',
  'sub-agent',
  'extension',
]);
const CLOSING: ReadonlySet<LogEntry['type']> = new Set<LogEntry['type']>([...AFTER_THE_END, 'tool-result', 'run-stop']);

const nothingLeftBehind: Invariant = (state, { journal, actors }) => {
  if (state.status !== 'done') return;
  hold(journal.open.size === 0, `nothing is open at the end: ${[...journal.open.keys()]}`);
  const alive = actors.filter((actor) => actor.getSnapshot().status === 'active');
  hold(alive.length === 0, `no actor is left at the end: ${alive.map(({ id }) => id)}`);
};

/** B24: a chart that is not at rest has an open request, or a child with one. Only a person ends a rest. */
const somethingWakesIt: Invariant = (state, { journal, actors }) => {
  if (state.status !== 'active') return;
  const children = actors.slice(1).filter((actor) => actor.getSnapshot().status === 'active').length;
  const rests = at(state, 'idle') || at(state, 'waiting');
  hold(rests || journal.open.size + children > 0, `nothing wakes ${JSON.stringify(state.value)}`);
};

export const everywhere: readonly Invariant[] = [
  checkpointsCloseTheirStep,
  oneResultACall,
  nothingAskedTwice,
  startedBeforeRun,
  suspensionsCount,
  oneEndARun,
  nothingLeftBehind,
  somethingWakesIt,
];

/** The end of the run is in the log once, and last. A run that only retries calls has no beginning and no end. */
const endIsLogged: Invariant = (state, { journal }) => {
  if (state.status !== 'done') return;
  const { end, durable, suspended } = state.output as RunChartOutput;
  hold(durable || end.cause === 'store', `an end that is not durable is the store's, not ${end.cause}`);
  if ((state.context as RunInput).trigger.kind === 'retry') {
    const bounds = journal.entries.filter(({ type }) => type.startsWith('run-'));
    return hold(bounds.length === 0, `${bounds.map(({ type }) => type)} of a retry`);
  }
  if (!durable) return;
  const [stop, last] = journal.entries.slice(-2);
  hold(last?.type === 'checkpoint' && last.boundary === 'RunFinished', 'the last entry is the checkpoint RunFinished');
  if (end.termination === 'Suspended') {
    const waiting = suspended.map(({ call }) => call.callId);
    hold(waiting.length > 0, 'a suspended run waits for something');
    hold(
      stop?.type === 'run-suspended' && stop.waiting.join() === waiting.join(),
      'the log contains the calls that the run waits for',
    );
  } else hold(stop?.type === 'run-stop', `the run's end is in the log, not ${stop?.type}`);
};

/** Returns the calls that a child of the run completed. */
function answeredByChildren({ events }: Seen): string[] {
  return events.flatMap((event) => {
    const { type, output } = event as { type: string; output?: unknown };
    if (type === 'call.settled') {
      const { callId, outcome } = output as { callId: string; outcome: string };
      return outcome === 'suspended' ? [] : [callId];
    }
    if (type !== 'xstate.done.actor.round') return [];
    const { slots } = output as { slots: { status: string; call: { callId: string } }[] };
    return slots.flatMap(({ status, call }) => (status === 'done' ? [call.callId] : []));
  });
}

/** Every call of the run has one result, or still waits. */
export const everyCallAccounted =
  (input: RunInput): Invariant =>
  (state, seen) => {
    if (state.status !== 'done') return;
    const { suspended, kept, reruns } = state.output as RunChartOutput;
    const idsOf = (calls: readonly { call: { callId: string } }[]): string[] => calls.map(({ call }) => call.callId);
    const made = entriesOf(seen.journal.entries, 'agent-output').flatMap(({ item }) =>
      item.type === 'tool-call' ? [item.callId] : [],
    );
    const accounted = [
      ...entriesOf(seen.journal.entries, 'tool-result').map(({ callId }) => callId),
      ...answeredByChildren(seen),
      ...idsOf([...suspended, ...kept, ...reruns]),
    ].sort();
    const calls = [...made, ...idsOf([...input.suspended, ...input.kept, ...input.reruns])].sort();
    hold(accounted.join() === calls.join(), `of the calls ${calls} these are accounted for: ${accounted}`);
  };

/** The conversation receives each steer that takes effect. */
const steersAreDelivered: Invariant = (_, { journal, sent }) => {
  const delivered = sent.flatMap(({ event }) =>
    event.type === 'steers.delivered'
      ? (event as unknown as { messages: { messageId: string }[] }).messages.map(({ messageId }) => messageId)
      : [],
  );
  const logged = entriesOf(journal.entries, 'user-message').filter(({ kind }) => kind === 'steer');
  hold(delivered.join() === logged.map(({ messageId }) => messageId).join(), `the steers sent are ${delivered}`);
};

export const ofRun = (input: RunInput): Invariant[] => [
  ...everywhere,
  endIsLogged,
  steersAreDelivered,
  everyCallAccounted(input),
];

export const at = (state: AnyMachineSnapshot, value: string): boolean => state.matches(value as never);
