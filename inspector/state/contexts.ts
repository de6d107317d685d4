/**
 * The moments whose contexts are compared: entries of a log, or what an actor of an app was asked for each time it had moved.
 * Rule: nothing is asked for and nothing is folded while nobody looks.
 */
import { computed, effect, signal } from '@preact/signals';
import type { Json } from '../../machines/vocabulary.ts';
import { contextsAt } from '../model/context.ts';
import { ask } from './live.ts';
import { connection, cursor, entries, open, openId, seqOf, tab } from './store.ts';
import { subject } from './subject.ts';

/** Sequence number or number of the moment, with the context as it was. */
export interface Moment {
  readonly name: string;
  readonly context: Json;
}

interface Sample extends Moment {
  readonly text: string;
}

const ASK_MS = 150;
const SAMPLES_MAX = 300;

/** The moment that others are compared with; nothing: the one before. Place of an entry, or of a sample. */
export const kept = signal<number | undefined>(undefined);
/** Of samples, the one that is shown; nothing: the last. */
const shownSample = signal<number | undefined>(undefined);
const samples = signal<readonly Sample[]>([]);

const isLooked = computed(() => tab.value === 'context');
const actorId = computed(() => (open.value?.of === 'xstate' ? subject.value?.actor?.id : undefined));
/** Changes whenever the actor may have another context. */
const moves = computed(() => {
  const id = actorId.value;
  return id === undefined ? 0 : (open.value?.observed?.events.filter(({ actor }) => actor === id).length ?? 0);
});

effect(() => {
  void openId.value;
  void actorId.value;
  kept.value = undefined;
  shownSample.value = undefined;
  samples.value = [];
});

async function take(actor: string, after: number): Promise<void> {
  try {
    const context = await ask({ type: 'context', actor });
    const text = JSON.stringify(context);
    if (actor !== actorId.peek() || context === null || samples.peek().at(-1)?.text === text) return;
    const name = after === 0 ? 'its start' : `event ${after}`;
    samples.value = [...samples.peek().slice(1 - SAMPLES_MAX), { name, context, text }];
  } catch {
    // The next one is asked for when it moves again.
  }
}

effect(() => {
  const actor = actorId.value;
  const after = moves.value;
  if (!isLooked.value || actor === undefined || connection.value.state !== 'open') return;
  const timer = setTimeout(() => void take(actor, after), ASK_MS);
  return () => clearTimeout(timer);
});

/** Where the page is among the moments, and how many there are. */
export const place = computed(() =>
  open.value?.of === 'xstate'
    ? Math.min(shownSample.value ?? samples.value.length - 1, samples.value.length - 1)
    : cursor.value,
);
export const isOfSamples = computed(() => open.value?.of === 'xstate');
export const sampleCount = computed(() => samples.value.length);

/** Both moments, the earlier one first; nothing before there is one. */
export const compared = computed((): { before: Moment; after: Moment } | undefined => {
  const at = place.value;
  if (!isLooked.value || at < 0) return undefined;
  const other = kept.value ?? at - 1;
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
export const keepMoment = (): void => {
  kept.value = kept.value === undefined ? place.value : undefined;
};
