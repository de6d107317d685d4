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
/** The most characters of all samples together. */
const TEXT_MAX = 32_000_000;

/** The latest samples. The number of a sample does not change when older ones are dropped. */
interface Samples {
  /** The number of the first one in the list. */
  readonly first: number;
  readonly list: readonly Sample[];
}
const NO_SAMPLES: Samples = { first: 0, list: [] };

/**
 * The moment that others are compared with: the index of an entry, or the number of a sample. Undefined selects the moment
 * before.
 */
export const comparedMoment = signal<number | undefined>(undefined);
/** The number of the shown sample. Undefined selects the last one. */
const shownSample = signal<number | undefined>(undefined);
const samples = signal<Samples>(NO_SAMPLES);

const isLooked = computed(() => tab.value === 'context');
const actorId = computed(() => (open.value?.of === 'xstate' ? subject.value?.actor?.id : undefined));
/** The number of the actor's last event. It changes whenever the actor's context may have changed. */
const moves = computed(() => {
  const id = actorId.value;
  const events = open.value?.observed?.events ?? [];
  for (let at = events.length - 1; at >= 0; at--) if (events[at]?.actor === id) return events[at]?.n ?? 0;
  return 0;
});

effect(() => {
  void openId.value;
  void actorId.value;
  comparedMoment.value = undefined;
  shownSample.value = undefined;
  samples.value = NO_SAMPLES;
});

function addSample({ first, list }: Samples, sample: Sample): Samples {
  const longer = [...list, sample];
  let length = longer.reduce((sum, { text }) => sum + text.length, 0);
  let dropped = 0;
  while (dropped < longer.length - 1 && (longer.length - dropped > SAMPLES_MAX || length > TEXT_MAX)) {
    length -= longer[dropped]?.text.length ?? 0;
    dropped += 1;
  }
  return { first: first + dropped, list: longer.slice(dropped) };
}

async function requestSample(actor: string, after: number): Promise<void> {
  try {
    const context = await ask({ type: 'context', actor });
    const text = JSON.stringify(context);
    if (actor !== actorId.peek() || context === null || samples.peek().list.at(-1)?.text === text) return;
    const name = after === 0 ? 'its start' : `event ${after}`;
    samples.value = addSample(samples.peek(), { name, context, text });
  } catch {
    // The next move requests the context again.
  }
}

let timer: ReturnType<typeof setTimeout> | undefined;
effect(() => {
  void moves.value;
  if (!isLooked.value || actorId.value === undefined || connection.value.state !== 'open') {
    clearTimeout(timer);
    timer = undefined;
    return;
  }
  // A later move does not delay the request: an actor may move at shorter intervals.
  timer ??= setTimeout(() => {
    timer = undefined;
    const actor = actorId.peek();
    if (actor !== undefined) void requestSample(actor, moves.peek());
  }, ASK_MS);
});

/** Returns the index of a sample in the list. One that was dropped has the index of the oldest. */
const indexOf = (number: number): number => {
  const { first, list } = samples.value;
  return Math.min(Math.max(0, number - first), list.length - 1);
};

/** The position of the page among the moments. */
export const place = computed(() =>
  open.value?.of === 'xstate' ? indexOf(shownSample.value ?? Number.POSITIVE_INFINITY) : cursor.value,
);
export const isOfSamples = computed(() => open.value?.of === 'xstate');
export const sampleCount = computed(() => samples.value.list.length);

/** Both moments, the earlier one first. Undefined if there is none. */
export const compared = computed((): { before: Moment; after: Moment } | undefined => {
  const at = place.value;
  if (!isLooked.value || at < 0) return undefined;
  const kept = comparedMoment.value;
  const other = kept === undefined ? at - 1 : isOfSamples.value ? indexOf(kept) : kept;
  const [from, to] = [Math.min(at, other), Math.max(at, other)];
  if (isOfSamples.value) {
    const { list } = samples.value;
    const after = list[to];
    return after && { before: list[from] ?? { name: 'nothing', context: {} }, after };
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
  const { first, list } = samples.value;
  shownSample.value = to >= list.length - 1 ? undefined : first + to;
}
export const toggleComparison = (): void => {
  const here = isOfSamples.value ? samples.value.first + place.value : place.value;
  comparedMoment.value = comparedMoment.value === undefined ? here : undefined;
};
