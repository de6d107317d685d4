/** What holds around the runs of a conversation. Rule: a message is queued, delivered, promoted or returned, once. */
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

/** One run while busy, none elsewhere. */
const oneRun: Invariant = (state, { actors }) => {
  const alive = actors.slice(1).filter((actor) => actor.getSnapshot().status === 'active').length;
  hold(alive === (at(state, 'busy') ? 1 : 0), `${alive} runs are alive in ${JSON.stringify(state.value)}`);
};

const waitsForSomething: Invariant = (state) => {
  if (!at(state, 'waiting')) return;
  const { waiting, open } = contextOf(state);
  hold(waiting && open.suspended.length > 0, 'a conversation that waits has a call that waits');
};

/** Runs that were under way, by conversation. */
const runsOf = new WeakMap<Seen, Set<string>>();

/** The host is told of each run's end once; a run that never began is told of where its message was given back. */
const endsAreTold: Invariant = (state, seen) => {
  const { journal, events } = seen;
  const runs = runsOf.get(seen) ?? new Set();
  runsOf.set(seen, runs);
  if (at(state, 'busy')) runs.add(contextOf(state).runId);
  const given = new Set<string>();
  const told = journal.started.filter((request) => {
    if (request.kind !== 'ended') return false;
    if (!runs.has(request.runId)) given.add(request.runId);
    return runs.has(request.runId);
  }).length;
  for (const runId of given) hold(!runs.has(runId), `${runId} was given back and begun`);
  const ended = events.filter(({ type }) => type === 'xstate.done.actor.run').length;
  hold(told === ended, `${ended} runs ended and ${told} ends were told`);
};

/** The messages that runs began with, by conversation. */
const begunOf = new WeakMap<Seen, Set<string>>();

/** The queue as the log had it when a run began, with the entries that are behind it, by conversation. */
const loggedOf = new WeakMap<Seen, { queue: readonly { messageId: string }[]; from: number; event: object }>();

/** Where a run begins with what the log has, that is the queue from then on. */
function loggedQueue(seen: Seen, input: ConversationInput): { queue: readonly { messageId: string }[]; from: number } {
  const event = seen.events.at(-1);
  const { waits } = (event as { of?: Continued } | undefined)?.of ?? {};
  const known = loggedOf.get(seen);
  if (!event || !waits || known?.event === event) return known ?? { queue: input.queue, from: 0 };
  const logged = { queue: waits.queue, from: seen.journal.entries.length, event };
  loggedOf.set(seen, logged);
  return logged;
}

/** The queue is what was queued and has not left it. */
function nothingQueuedIsLost(input: ConversationInput): Invariant {
  return (state, seen) => {
    const { journal, events } = seen;
    const { trigger, queue } = contextOf(state);
    const begun = begunOf.get(seen) ?? new Set();
    begunOf.set(seen, begun);
    if (trigger.kind === 'message') begun.add(trigger.message.messageId);
    const { queue: known, from } = loggedQueue(seen, input);
    const since = entriesOf(journal.entries.slice(from), 'message-queued');
    const queued = [...known, ...since].map(({ messageId }) => messageId);
    const returned = entriesOf(journal.entries, 'message-returned').map(({ messageId }) => messageId);
    const delivered = events.flatMap((event) =>
      event.type === 'steers.delivered'
        ? (event as unknown as { messages: { messageId: string }[] }).messages.map(({ messageId }) => messageId)
        : [],
    );
    const left = queued.filter((id) => ![...returned, ...delivered].includes(id) && !begun.has(id));
    const now = queue.map(({ messageId }) => messageId);
    hold(left.join() === now.join(), `the queue holds ${now}, and should hold ${left}`);
    hold(new Set(returned).size === returned.length, `a message is returned once: ${returned}`);
  };
}

export const ofConversation = (input: ConversationInput): Invariant[] => [
  ...everywhere,
  oneRun,
  waitsForSomething,
  endsAreTold,
  nothingQueuedIsLost(input),
];
