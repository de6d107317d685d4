/**
 * A projection as a view. Rule: making it costs a constant, because long lists are built when they are first read, from
 * lists that nobody changes any more once the projection took a new owner.
 */
import type { QueuedMessage } from '../../machines/vocabulary.ts';
import { notesView } from './notes.ts';
import type { Projection } from './projection.ts';
import { queueView } from './queue.ts';
import { cycleViews } from './requestCycle.ts';
import type { ConversationView, RequestCycle } from './view.ts';

const EAGER_MAX = 64;

export function snapshot({ phase: state, ledger: growing, queue: waiting, notes }: Projection): ConversationView {
  const ledger = { ...growing };
  const diagnostics = notesView(notes);
  let cycles: readonly RequestCycle[] | undefined;
  if (waiting.size <= EAGER_MAX) {
    return Object.freeze({
      state,
      get cycles() {
        cycles ??= cycleViews(ledger);
        return cycles;
      },
      queued: queueView(waiting),
      diagnostics,
    });
  }
  const queue = { ...waiting };
  return Object.freeze({
    state,
    get cycles() {
      cycles ??= cycleViews(ledger);
      return cycles;
    },
    get queued(): readonly QueuedMessage[] {
      return queueView(queue);
    },
    diagnostics,
  });
}
