/**
 * The rules around the runs of a conversation. Invariant: a message is queued, delivered, promoted or returned, once.
 */
import type { AnyMachineSnapshot } from 'xstate';
import type { Continued } from '../../machines/conversation/context.ts';
import type { ConversationInput, Trigger } from '../../machines/index.ts';
import type { Invariant } from '../../src/testing/chartPaths/drive.ts';
import type { Seen } from '../../src/testing/chartPaths/drivenChart.ts';
import { at, entriesOf, everywhere, hold } from './invariants.ts';

interface Context {
  runId: string;
  queue: readonly { messageId: string }[];
  trigger: Trigger;
  waiting: boolean;
  open: { suspended: readonly unknown[] };
}
const contextOf = (state: AnyMachineSnapshot): Context => state.context as Context;

/** A busy conversation has one run, and any other has none. */
const oneRun: Invariant = (state, { actors }) => {
  const alive = actors.slice(1).filter((actor) => actor.getSnapshot().status === 'active').length;
  hold(alive === (at(state, 'busy') ? 1 : 0), `${alive} runs are alive in ${JSON.stringify(state.value)}`);
};

const waitsForSomething: Invariant = (state) => {
  if (!at(state, 'waiting')) return;
  const { waiting, open } = contextOf(state);
  hold(waiting && open.suspended.length > 0, 'a conversation that waits has a call that waits');
};

/** The active runs by conversation. */
const runsOf = new WeakMap<Seen, Set<string>>();

/** The host receives each run's end once. If a run never began, the host receives it when the message is returned. */
const endsAreReported: Invariant = (state, seen) => {
  const { journal, events } = seen;
  const runs = runsOf.get(seen) ?? new Set();
  runsOf.set(seen, runs);
  if (at(state, 'busy')) runs.add(contextOf(state).runId);
  const reportedIds = new Set<string>();
  const reports = journal.started.filter((request) => {
    if (request.kind !== 'ended') return false;
    if (!runs.has(request.runId)) reportedIds.add(request.runId);
    return runs.has(request.runId);
  }).length;
  for (const runId of reportedIds) hold(!runs.has(runId), `${runId} was returned and begun`);
  const ended = events.filter(({ type }) => type === 'xstate.done.actor.run').length;
  hold(reports === ended, `${ended} runs ended and ${reports} ends were reported`);
};

/** The first message of each run, by conversation. */
const begunOf = new WeakMap<Seen, Set<string>>();

interface LoggedQueue {
  queue: readonly { messageId: string }[];
  /** The entries before it. A failed append may take some of them away. */
  before: ReadonlySet<object>;
}
/** The log's queue where an event brought it, by conversation. */
const loggedOf = new WeakMap<Seen, LoggedQueue & { event: object }>();

/** If a run or a rewind starts from the log, the log's queue is valid from then on. */
function loggedQueue(seen: Seen, input: ConversationInput): LoggedQueue {
  const event = seen.events.at(-1);
  const { waits } = (event as { of?: Continued } | undefined)?.of ?? {};
  const earlier = loggedOf.get(seen);
  if (!event || !waits || earlier?.event === event) return earlier ?? { queue: input.queue, before: new Set() };
  const logged = { queue: waits.queue, before: new Set(seen.journal.entries), event };
  loggedOf.set(seen, logged);
  return logged;
}

/** The queue contains the queued messages that have not left it. */
function nothingQueuedIsLost(input: ConversationInput): Invariant {
  return (state, seen) => {
    const { journal, events } = seen;
    const { trigger, queue } = contextOf(state);
    const begun = begunOf.get(seen) ?? new Set();
    begunOf.set(seen, begun);
    if (trigger.kind === 'message') begun.add(trigger.message.messageId);
    const { queue: initial, before } = loggedQueue(seen, input);
    const since = entriesOf(
      journal.entries.filter((entry) => !before.has(entry)),
      'message-queued',
    );
    const queued = [...initial, ...since].map(({ messageId }) => messageId);
    const returned = entriesOf(journal.entries, 'message-returned').map(({ messageId }) => messageId);
    const delivered = events.flatMap((event) =>
      event.type === 'steers.delivered'
        ? (event as unknown as { messages: { messageId: string }[] }).messages.map(({ messageId }) => messageId)
        : [],
    );
    const expected = queued.filter((id) => ![...returned, ...delivered].includes(id) && !begun.has(id));
    const now = queue.map(({ messageId }) => messageId);
    hold(expected.join() === now.join(), `the queue holds ${now}, and should hold ${expected}`);
    hold(new Set(returned).size === returned.length, `a message is returned once: ${returned}`);
  };
}

export const ofConversation = (input: ConversationInput): Invariant[] => [
  ...everywhere,
  oneRun,
  waitsForSomething,
  endsAreReported,
  nothingQueuedIsLost(input),
];
