/**
 * Apps of XState 5 that connect with `createWebSocketInspector` of `@statelyai/inspect`, as records. Rule: that wire has
 * neither numbers nor transitions, an actor may be told late or never, and all of it is an app's own word: it is read
 * before it counts, copied within bounds, and no app reaches the actors of another.
 */
import type { Json } from '../../machines/vocabulary.ts';
import type { Chart, ChartState, ChartTransition } from './chart.ts';
import { CONTEXT, excerpt } from './excerpt.ts';
import type { Observed } from './observed.ts';
import type { RecordLog } from './recordLog.ts';
import type { ActorStatus, StateValue } from './wire.ts';

type Fields = { readonly [name: string]: unknown };

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
const listOf = (value: unknown): readonly unknown[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, 500) : undefined;

/** Levels of states that are read. */
const DEPTH_MAX = 20;

/** The chart of a machine's configuration as JSON, where functions are `{ type: name }`. */
export function chartOfConfig(config: unknown): Chart {
  const given = fieldsOf(config);
  const name = textOf(given.id) ?? '(machine)';
  const root = stateOf(given, { key: name, id: name, parent: undefined, depth: 0 });
  return { name, root };
}

interface Place {
  key: string;
  id: string;
  parent: Place | undefined;
  depth: number;
}

function typeOf({ type }: Fields, states: readonly unknown[]): ChartState['type'] {
  if (type === 'final' || type === 'parallel' || type === 'history') return type;
  return states.length > 0 ? 'compound' : 'atomic';
}

function stateOf(given: Fields, place: Place): ChartState {
  const children = place.depth < DEPTH_MAX ? Object.entries(fieldsOf(given.states)) : [];
  const states = children.map(([key, child]) => {
    const state = fieldsOf(child);
    const id = textOf(state.id) ?? `${place.id}.${key}`;
    return stateOf(state, { key, id, parent: place, depth: place.depth + 1 });
  });
  const lists: [string, unknown][] = [
    ...Object.entries(fieldsOf(given.on)),
    ...Object.entries(fieldsOf(given.after)).map(([delay, list]): [string, unknown] => [`after ${delay}`, list]),
    ...(given.onDone === undefined ? [] : [['done', given.onDone] as [string, unknown]]),
    ...listOf(given.invoke).flatMap((each) => invokedLists(fieldsOf(each))),
    ['', given.always],
  ];
  const type = typeOf(given, states);
  const initial = textOf(given.initial) ?? textOf(fieldsOf(given.initial).target);
  const invoked = listOf(given.invoke).map((each) => sourceOf(fieldsOf(each)));
  const description = textOf(given.description);
  return {
    id: place.id,
    key: place.key,
    type,
    ...(type === 'compound' && initial && { initial }),
    states,
    transitions: lists.flatMap(([event, list]) =>
      listOf(list).map((each, index) => transitionOf(each, { event, index }, place)),
    ),
    ...(invoked.length > 0 && { invoked }),
    ...(description && { description }),
  };
}

const sourceOf = ({ src, id }: Fields): string => textOf(src) ?? textOf(fieldsOf(src).type) ?? textOf(id) ?? 'actor';

function invokedLists(invoke: Fields): [string, unknown][] {
  const name = textOf(invoke.id) ?? sourceOf(invoke);
  const lists: [string, unknown][] = [
    [`done ${name}`, invoke.onDone],
    [`error ${name}`, invoke.onError],
  ];
  return lists.filter(([, list]) => list !== undefined);
}

function transitionOf(given: unknown, at: { event: string; index: number }, place: Place): ChartTransition {
  const made = typeof given === 'string' ? { target: given } : fieldsOf(given);
  const { guard } = made;
  const guardName = textOf(guard) ?? textOf(fieldsOf(guard).type) ?? (guard === undefined ? undefined : 'guard');
  const targets = listOf(made.target).flatMap((target) => targetOf(textOf(target), place));
  return { ...at, targets, ...(guardName && { guard: guardName }), ...(made.reenter === true && { reenter: true }) };
}

/** `#id`, `.child`, or a sibling. */
function targetOf(target: string | undefined, place: Place): string[] {
  if (target === undefined) return [];
  if (target.startsWith('#')) return [target.slice(1)];
  if (target.startsWith('.')) return [`${place.id}${target}`];
  return [`${(place.parent ?? place).id}.${target}`];
}

interface AppActor {
  readonly id: string;
  readonly conversation: string;
  readonly parent: string | undefined;
  value: string;
  status: ActorStatus;
  context: Json;
}

const STATUSES = new Set<unknown>(['active', 'done', 'error', 'stopped']);
const statusOf = (status: unknown): ActorStatus => (STATUSES.has(status) ? (status as ActorStatus) : 'active');

/** State values are texts all the way down. */
function stateValueOf(value: unknown, depth = 0): StateValue {
  if (typeof value === 'string') return value.slice(0, 500);
  if (!isFields(value) || depth > DEPTH_MAX) return '';
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, 200)
      .map(([key, inner]) => [key, stateValueOf(inner, depth + 1)]),
  );
}

/** Actors that one connection may have on record at a time. */
const ACTORS_MAX = 2000;

/** One connection of an app. */
export class AppConnection {
  readonly #records: RecordLog;
  readonly #observed: Observed;
  readonly #actors = new Map<string, AppActor>();
  /** By the id of its root. */
  readonly #apps = new Map<string, string>();

  constructor(records: RecordLog, observed: Observed) {
    this.#records = records;
    this.#observed = observed;
  }

  /** Takes a message as text; false for what is none. */
  take(text: string): boolean {
    let given: unknown;
    try {
      given = JSON.parse(text);
    } catch {
      return false;
    }
    const message = fieldsOf(given);
    const sessionId = textOf(message.sessionId);
    if (sessionId === undefined) return false;
    switch (message.type) {
      case '@xstate.actor':
        return this.#actor(sessionId, message);
      case '@xstate.event':
        return this.#event(sessionId, message);
      case '@xstate.snapshot':
        return this.#snapshot(sessionId, message);
      default:
        return false;
    }
  }

  /** Within bounds and without credentials; null for an actor that is not of this app. */
  contextOf(actorId: string): Json {
    for (const { id, context } of this.#actors.values()) if (id === actorId) return context;
    return null;
  }

  /** The app has left: what it ran is not known any more. */
  close(): void {
    for (const conversation of this.#apps.values()) this.#records.add({ type: 'status', conversation, status: 'gone' });
    this.#actors.clear();
  }

  #actor(sessionId: string, message: Fields): boolean {
    if (this.#actors.has(sessionId) || this.#actors.size >= ACTORS_MAX) return true;
    const parentId = textOf(message.parentId);
    const parent = parentId === undefined ? undefined : this.#actors.get(parentId);
    const name = textOf(message.name) ?? sessionId;
    const chart = this.#chartOf(message.definition);
    const conversation = parent?.conversation ?? this.#appOf(textOf(message.rootId) ?? sessionId, name);
    const id = this.#observed.nextActorId();
    const known: AppActor = {
      id,
      conversation,
      parent: parent?.id,
      value: '',
      status: 'active',
      context: null,
    };
    this.#actors.set(sessionId, known);
    this.#records.add({
      type: 'actor',
      actor: id,
      conversation,
      name,
      ...(parent && { parent: parent.id }),
      ...(chart !== undefined && { chart }),
    });
    if (isFields(message.snapshot)) this.#show(known, sessionId, message.snapshot, '');
    return true;
  }

  #event(sessionId: string, { event, sourceId }: Fields): boolean {
    const known = this.#known(sessionId);
    const type = textOf(fieldsOf(event).type);
    if (!known || type === undefined) return false;
    const from = this.#actors.get(textOf(sourceId) ?? '');
    const shown = excerpt(event) as { type: string; [field: string]: Json };
    this.#records.add({ type: 'event', actor: known.id, ...(from && { from: from.id }), event: { ...shown, type } });
    return true;
  }

  #snapshot(sessionId: string, { event, snapshot }: Fields): boolean {
    const known = this.#known(sessionId);
    if (!known || !isFields(snapshot)) return false;
    this.#show(known, sessionId, snapshot, textOf(fieldsOf(event).type) ?? '');
    return true;
  }

  #show(known: AppActor, sessionId: string, snapshot: Fields, event: string): void {
    const value = stateValueOf(snapshot.value);
    const status = statusOf(snapshot.status);
    const text = JSON.stringify(value);
    known.context = excerpt(snapshot.context, CONTEXT);
    if (text !== known.value || status !== known.status || event !== '')
      this.#records.add({ type: 'settled', actor: known.id, event, value, status });
    known.value = text;
    known.status = status;
    if (status === 'active') return;
    this.#actors.delete(sessionId);
    const error = textOf(fieldsOf(snapshot.error).message) ?? textOf(snapshot.error);
    this.#records.add({ type: 'stopped', actor: known.id, status, ...(status === 'error' && error && { error }) });
  }

  /** One that was not announced to us: the app connected late, or dropped what it could not send. */
  #known(sessionId: string): AppActor | undefined {
    if (!this.#actors.has(sessionId)) this.#actor(sessionId, { name: sessionId });
    return this.#actors.get(sessionId);
  }

  #appOf(rootId: string, name: string): string {
    const known = this.#apps.get(rootId);
    if (known !== undefined) return known;
    const conversation = this.#observed.nextName(name);
    this.#apps.set(rootId, conversation);
    this.#records.add({ type: 'conversation', conversation, of: 'xstate' });
    return conversation;
  }

  #chartOf(definition: unknown): string | undefined {
    const text = typeof definition === 'string' ? definition : undefined;
    if (text === undefined) return undefined;
    try {
      const config: unknown = JSON.parse(text);
      return isFields(config) && isFields(config.states) ? this.#observed.charts.add(chartOfConfig(config)) : undefined;
    } catch {
      return undefined;
    }
  }
}
