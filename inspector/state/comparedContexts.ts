/**
 * The moments whose contexts are compared: entries of a log, or the contexts of an app's actor after each of its moves.
 * Invariant: nothing is requested or folded unless the tab is open.
 */
import { computed, effect, signal } from '@preact/signals';
import type { Json } from '../../machines/vocabulary.ts';
import { contextsAt } from '../model/contextAt.ts';
import { connection, cursor, entries, open, openId, seqOf, tab } from './pageState.ts';
import { ask } from './serverConnection.ts';
import { subject } from './shownActor.ts';

/** The context at a moment, named by its sequence number or by the event before it. */
export interface Moment {
  readonly name: string;
  readonly context: Json;
}

interface Sample extends Moment {
  readonly text: string;
}

const ASK_MS = 150;
const SAMPLES_MAX = 300;

/** The moment that others are compared with: the place of an entry or sample. Undefined selects the moment before. */
export const comparedMoment = signal<number | undefined>(undefined);
/** The shown sample. Undefined selects the last one. */
const shownSample = signal<number | undefined>(undefined);
const samples = signal<readonly Sample[]>([]);

const isLooked = computed(() => tab.value === 'context');
const actorId = computed(() => (open.value?.of === 'xstate' ? subject.value?.actor?.id : undefined));
/** Changes whenever the actor's context may have changed. */
const moves = computed(() => {
  const id = actorId.value;
  return id === undefined ? 0 : (open.value?.observed?.events.filter(({ actor }) => actor === id).length ?? 0);
});

effect(() => {
  void openId.value;
  void actorId.value;
  comparedMoment.value = undefined;
  shownSample.value = undefined;
  samples.value = [];
});

async function requestSample(actor: string, after: number): Promise<void> {
  try {
    const context = await ask({ type: 'context', actor });
    const text = JSON.stringify(context);
    if (actor !== actorId.peek() || context === null || samples.peek().at(-1)?.text === text) return;
    const name = after === 0 ? 'its start' : `event ${after}`;
    samples.value = [...samples.peek().slice(1 - SAMPLES_MAX), { name, context, text }];
  } catch {
    // The next move requests the context again.
  }
}

effect(() => {
  const actor = actorId.value;
  const after = moves.value;
  if (!isLooked.value || actor === undefined || connection.value.state !== 'open') return;
  const timer = setTimeout(() => void requestSample(actor, after), ASK_MS);
  return () => clearTimeout(timer);
});

/** The position of the page among the moments. */
export const place = computed(() =>
  open.value?.of === 'xstate'
    ? Math.min(shownSample.value ?? samples.value.length - 1, samples.value.length - 1)
    : cursor.value,
);
export const isOfSamples = computed(() => open.value?.of === 'xstate');
export const sampleCount = computed(() => samples.value.length);

/** Both moments, the earlier one first. Undefined if there is none. */
export const compared = computed((): { before: Moment; after: Moment } | undefined => {
  const at = place.value;
  if (!isLooked.value || at < 0) return undefined;
  const other = comparedMoment.value ?? at - 1;
  const [from, to] = [Math.min(at, other), Math.max(at, other)];
  if (isOfSamples.value) {
    const after = samples.value[to];
    return after && { before: samples.value[from] ?? { name: 'nothing', context: {} }, after };
  }
  const [before = {}, after = {}] = contextsAt(entries.value, [from, to]);
  return {
    before: { name: from < 0 ? 'nothing' : `entry ${seqOf(from)}`, context: from < 0 ? {} : before },
    after: { name: `entry ${seqOf(to)}`, context: after },
  };
});

export function showSample(by: 1 | -1): void {
  const to = place.value + by;
  if (to < 0) return;
  shownSample.value = to >= samples.value.length - 1 ? undefined : to;
}
export const toggleComparison = (): void => {
  comparedMoment.value = comparedMoment.value === undefined ? place.value : undefined;
};
