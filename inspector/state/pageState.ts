/**
 * The state of the page as signals. Invariant: one log, one cursor. Every panel is computed from
 * `entries[0..cursor]`, and only the functions here change either.
 */
import { computed, signal } from '@preact/signals';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { ConversationState } from '../../src/inspect/wire.ts';
import type { InFlight } from '../../src/live.ts';
import { foldLog, type LogFacts, type RunState, runStateAt } from '../model/logFacts.ts';
import type { Observed } from '../model/observedActors.ts';
import type { BrokenLine } from '../model/readLogText.ts';
import { type Redaction, redactionsOf } from '../model/redactions.ts';
import type { Moment } from '../model/stepRows.ts';

export interface Conversation {
  readonly id: string;
  readonly source: 'file' | 'live';
  readonly of: 'runchart' | 'xstate';
  readonly entries: readonly LogEntry[];
  readonly broken: readonly BrokenLine[];
  /** For a file: the lines that were not read yet. */
  readonly rest?: { readonly read: number; readonly lines: number; more(): Promise<void> };
  readonly status?: ConversationState;
  readonly parent?: { readonly conversation: string; readonly callId: string };
  readonly inFlight?: Pick<InFlight, 'text' | 'reasoning'>;
  /** The page made it from the beginning of another log. */
  readonly isFork?: true;
  /** The app's actors accept events from the page. */
  readonly takesEvents?: true;
  /** Observed actors and transitions; live conversations only. */
  readonly observed?: Observed;
}

export type Tab = 'steps' | 'events' | 'sequence' | 'context';
export type Connection =
  | { readonly state: 'none' }
  | { readonly state: 'open'; readonly control: boolean; readonly host: string }
  | { readonly state: 'lost'; readonly control: boolean; readonly host: string; readonly since: number };

export const conversations = signal<ReadonlyMap<string, Conversation>>(new Map());
export const openId = signal<string | undefined>(undefined);
/** Differs for each start of the server, which numbers its records from 0. */
export const session = signal<string | undefined>(undefined);
/** The key of the selected row of the tree. Undefined selects the last run. */
export const chosen = signal<string | undefined>(undefined);
/** Undefined while the page follows the end of the log. */
const heldCursor = signal<number | undefined>(undefined);
export const clock = signal(Date.now());
export const connection = signal<Connection>({ state: 'none' });
export const reading = signal<string>('');
export const tab = signal<Tab>('steps');
export const dockIsOpen = signal<boolean | undefined>(undefined);
export const coverage = signal(false);
export const helpIsOpen = signal(false);
export const treeIsOpen = signal(false);
export const redactionsAreOpen = signal(false);
/** The panel that a narrow window shows. */
export type NarrowTab = 'chart' | 'steps' | 'events' | 'time';
export const narrowTab = signal<NarrowTab>('chart');
export const playing = signal(false);
export const speed = signal(1);
/** The offset, scale and size of the canvas, updated when nothing moves. */
export const chartView = signal({ x: 0, y: 0, k: 1, width: 0, height: 0 });
export const chosenState = signal<string | undefined>(undefined);
export const folds = signal<ReadonlyMap<string, boolean>>(new Map());
/** A short sentence in the status bar, also announced to screen readers. */
export const announcement = signal('');
export const windowSize = signal({ width: innerWidth, height: innerHeight });
export const isNarrow = computed(() => windowSize.value.width < 1024);

const NOTHING: readonly LogEntry[] = [];
export const open = computed(() => (openId.value === undefined ? undefined : conversations.value.get(openId.value)));
export const entries = computed(() => open.value?.entries ?? NOTHING);
const folded = new WeakMap<readonly LogEntry[], LogFacts>();
/** Returns the facts of a log. A log that has not grown is not folded again. */
export function factsOf(list: readonly LogEntry[]): LogFacts {
  const logFacts = folded.get(list) ?? foldLog(list);
  folded.set(list, logFacts);
  return logFacts;
}
export const facts = computed(() => factsOf(entries.value));
/** Finds a conversation by the id in its log. Conversations from files are named by their files here. */
export const conversationNamed = (id: string): Conversation | undefined =>
  conversations.value.get(id) ??
  [...conversations.value.values()].find(({ entries: [first] }) => first?.conversationId === id);
/** Entries of which the server has sent a part, because they do not fit a frame. */
const partialEntries = new WeakSet<LogEntry>();
export const markPartial = (entry: LogEntry): void => void partialEntries.add(entry);
export const isPartial = (entry: LogEntry | undefined): boolean => entry !== undefined && partialEntries.has(entry);

let searched: { first: LogEntry | undefined; upTo: number; redactions: readonly Redaction[] } | undefined;
/** Redacted values of the open log. Entries that were searched are not searched again. */
export const redactions = computed(() => {
  const list = entries.value;
  // A fork has the first entries of its original, and fewer of them.
  if (!searched || searched.first !== list[0] || list.length < searched.upTo)
    searched = { first: list[0], upTo: 0, redactions: [] };
  const more = redactionsOf(list, searched.upTo);
  searched.upTo = list.length;
  if (more.length > 0) searched.redactions = [...searched.redactions, ...more];
  return searched.redactions;
});
export const last = computed(() => entries.value.length - 1);
/** Returns the sequence number of an entry in its log. */
export const seqOf = (index: number): number => entries.value[index]?.seq ?? Math.max(0, index);
export const cursor = computed(() => Math.min(heldCursor.value ?? last.value, last.value));
/** True if the page stays at an entry although later ones exist. */
export const isPast = computed(() => heldCursor.value !== undefined && heldCursor.value < last.value);
export const isFollowing = computed(() => heldCursor.value === undefined);

export const lastRun = computed(() => facts.value.runs.filter(({ from }) => from <= cursor.value).at(-1));
export const isWaitingLive = computed(() => facts.value.runs.at(-1)?.stop?.state === 'waiting');

/** True while time advances for what is shown: a live conversation that works or waits, at its end. */
export const isMoving = computed(() => {
  const conversation = open.value;
  if (conversation?.source !== 'live' || isPast.value || conversation.status === 'gone') return false;
  const run = facts.value.runs.at(-1);
  return run !== undefined && (runStateAt(run, last.value) === 'running' || isWaitingLive.value);
});
const lastAt = computed(() => entries.value[cursor.value]?.at ?? 0);
export const now = computed(() => (isMoving.value ? Math.max(clock.value, lastAt.value) : lastAt.value));
export const moment = computed(
  (): Moment => ({
    ...{ entries: entries.value, facts: facts.value, index: cursor.value, now: now.value },
    ...(open.value?.observed && { observed: open.value.observed }),
  }),
);

export type PageState = RunState | 'idle' | 'open';
export const stateAt = (index: number): PageState => {
  const run = facts.value.runs.filter(({ from }) => from <= index).at(-1);
  if (!run) return 'idle';
  const state = runStateAt(run, index);
  if (state === 'running' && open.value?.source === 'file' && index === last.value) return 'open';
  if (state === 'running' && open.value?.status === 'gone' && index === last.value) return 'open';
  return state;
};

export function moveTo(index: number): void {
  if (entries.value.length === 0) return;
  const to = Math.max(0, Math.min(last.value, index));
  heldCursor.value = to === last.value ? undefined : to;
}
export const follow = (): void => {
  heldCursor.value = undefined;
  playing.value = false;
};

export function openConversation(id: string): void {
  if (openId.value === id) return;
  openId.value = id;
  announcement.value = '';
  chosen.value = undefined;
  chosenState.value = undefined;
  heldCursor.value = undefined;
  playing.value = false;
}

export function put(conversation: Conversation): void {
  const next = new Map(conversations.value);
  next.set(conversation.id, conversation);
  conversations.value = next;
}

export function setFold(key: string, isOpen: boolean): void {
  folds.value = new Map(folds.value).set(key, isOpen);
}

/** Moves to the next entry in a direction that `stops` accepts. */
export function step(direction: 1 | -1, stops: (index: number) => boolean = () => true): void {
  let index = cursor.value + direction;
  while (index > 0 && index < last.value && !stops(index)) index += direction;
  moveTo(index);
}
