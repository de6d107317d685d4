/**
 * Records of XState 5 apps that connect with `createWebSocketInspector` of `@statelyai/inspect`. Invariant: every
 * message is untrusted. It is validated and copied within limits, and no app can reach the actors of another. The
 * protocol has neither numbers nor transitions, and an actor may be announced late or never.
 */
import type { Json } from '../../machines/vocabulary.ts';
import { beginning } from '../printable.ts';
import type { Chart, ChartState, ChartTransition } from './chart.ts';
import { CONTEXT, excerpt } from './excerpt.ts';
import type { Observed } from './observed.ts';
import type { RecordLog } from './recordLog.ts';
import type { ActorState, ActorStatus, StateValue } from './wire.ts';

type Fields = { readonly [name: string]: unknown };

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
const listOf = (value: unknown): readonly unknown[] =>
  value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? beginning(value, 500) : undefined;

/** Deeper states are ignored. */
const DEPTH_MAX = 20;

/** Returns the chart of a machine configuration in JSON, where functions are `{ type: name }`. */
export function chartOfConfig(config: unknown): Chart {
  const fields = fieldsOf(config);
  const name = textOf(fields.id) ?? '(machine)';
  const root = stateOf(fields, { key: name, id: name, parent: undefined, depth: 0, ids: new Set([name]) });
  return { name, root };
}

interface Place {
  key: string;
  id: string;
  parent: Place | undefined;
  depth: number;
  /** The ids of all states so far. */
  ids: Set<string>;
}

/** Returns an id that no other state has, because a state could be its own parent otherwise. */
function ownId(ids: Set<string>, ...candidates: readonly (string | undefined)[]): string {
  let id = candidates.find((one) => one !== undefined && !ids.has(one)) ?? `${candidates.at(-1)}`;
  for (let number = 2; ids.has(id); number++) id = `${candidates.at(-1)} ${number}`;
  ids.add(id);
  return id;
}

function typeOf({ type }: Fields, states: readonly unknown[]): ChartState['type'] {
  if (type === 'final' || type === 'parallel' || type === 'history') return type;
  return states.length > 0 ? 'compound' : 'atomic';
}

function stateOf(fields: Fields, place: Place): ChartState {
  const children = place.depth < DEPTH_MAX ? Object.entries(fieldsOf(fields.states)) : [];
  const states = children.map(([key, child]) => {
    const state = fieldsOf(child);
    const id = ownId(place.ids, textOf(state.id), `${place.id}.${key}`);
    return stateOf(state, { key, id, parent: place, depth: place.depth + 1, ids: place.ids });
  });
  const lists: [string, unknown][] = [
    ...Object.entries(fieldsOf(fields.on)),
    ...Object.entries(fieldsOf(fields.after)).map(([delay, list]): [string, unknown] => [`after ${delay}`, list]),
    ...(fields.onDone === undefined ? [] : [['done', fields.onDone] as [string, unknown]]),
    ...listOf(fields.invoke).flatMap((each) => invokedLists(fieldsOf(each))),
    ['', fields.always],
  ];
  const type = typeOf(fields, states);
  const initial = textOf(fields.initial) ?? textOf(fieldsOf(fields.initial).target);
  const invoked = listOf(fields.invoke).map((each) => sourceOf(fieldsOf(each)));
  const description = textOf(fields.description);
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

function transitionOf(transition: unknown, at: { event: string; index: number }, place: Place): ChartTransition {
  const fields = typeof transition === 'string' ? { target: transition } : fieldsOf(transition);
  const { guard } = fields;
  const guardName = textOf(guard) ?? textOf(fieldsOf(guard).type) ?? (guard === undefined ? undefined : 'guard');
  const targets = listOf(fields.target).flatMap((target) => targetOf(textOf(target), place));
  return { ...at, targets, ...(guardName && { guard: guardName }), ...(fields.reenter === true && { reenter: true }) };
}

/** Resolves `#id`, `.child` or a sibling's key. */
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

/** Only strings are allowed as leaves of a state value. */
function stateValueOf(value: unknown, depth = 0): StateValue {
  if (typeof value === 'string') return beginning(value, 500);
  if (!isFields(value) || depth > DEPTH_MAX) return '';
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, 200)
      .map(([key, inner]) => [key, stateValueOf(inner, depth + 1)]),
  );
}

/** The most actors that one connection may have at a time. */
const ACTORS_MAX = 2000;
/** The most actors that have ended and are remembered. */
const ENDED_MAX = 5000;

/** One connection of an app. */
export class AppConnection {
  readonly #records: RecordLog;
  readonly #observed: Observed;
  readonly #actors = new Map<string, AppActor>();
  /** The latest session ids that have ended. Events that are sent to them later are reported too. */
  readonly #ended = new Set<string>();
  /** Names of apps by the session id of their root. */
  readonly #apps = new Map<string, string>();

  constructor(records: RecordLog, observed: Observed) {
    this.#records = records;
    this.#observed = observed;
  }

  /** Processes a message. Returns false if it is invalid. */
  receive(text: string): boolean {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      return false;
    }
    const message = fieldsOf(parsed);
    const sessionId = textOf(message.sessionId);
    if (sessionId === undefined) return false;
    if (message.type !== '@xstate.actor' && this.#ended.has(sessionId)) return true;
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

  /** Returns the context within limits and without credentials, or null if the actor is not of this app. */
  contextOf(actorId: string): Json {
    for (const { id, context } of this.#actors.values()) if (id === actorId) return context;
    return null;
  }

  /** Yields the states of its actors. */
  *states(): Generator<ActorState> {
    for (const { id, value, status } of this.#actors.values()) {
      if (value !== '') yield { actor: id, value: JSON.parse(value) as StateValue, status };
    }
  }

  /** Marks the conversations of a disconnected app, because the state of its actors is now unknown. */
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
    const added: AppActor = {
      id,
      conversation,
      parent: parent?.id,
      value: '',
      status: 'active',
      context: null,
    };
    this.#ended.delete(sessionId);
    this.#actors.set(sessionId, added);
    this.#records.add({
      type: 'actor',
      actor: id,
      conversation,
      name,
      ...(parent && { parent: parent.id }),
      ...(chart !== undefined && { chart }),
    });
    if (isFields(message.snapshot)) this.#show(added, sessionId, message.snapshot, '');
    return true;
  }

  #event(sessionId: string, { event, sourceId }: Fields): boolean {
    const actor = this.#actorOf(sessionId);
    const type = textOf(fieldsOf(event).type);
    if (!actor || type === undefined) return false;
    const from = this.#actors.get(textOf(sourceId) ?? '');
    const shown = excerpt(event) as { type: string; [field: string]: Json };
    this.#records.add({ type: 'event', actor: actor.id, ...(from && { from: from.id }), event: { ...shown, type } });
    return true;
  }

  #snapshot(sessionId: string, { event, snapshot }: Fields): boolean {
    const actor = this.#actorOf(sessionId);
    if (!actor || !isFields(snapshot)) return false;
    this.#show(actor, sessionId, snapshot, textOf(fieldsOf(event).type) ?? '');
    return true;
  }

  #show(actor: AppActor, sessionId: string, snapshot: Fields, event: string): void {
    const value = stateValueOf(snapshot.value);
    const status = statusOf(snapshot.status);
    const text = JSON.stringify(value);
    actor.context = excerpt(snapshot.context, CONTEXT);
    if (text !== actor.value || status !== actor.status || event !== '')
      this.#records.add({ type: 'settled', actor: actor.id, event, value, status });
    actor.value = text;
    actor.status = status;
    if (status === 'active') return;
    this.#actors.delete(sessionId);
    this.#rememberEnd(sessionId);
    const { message = snapshot.error } = fieldsOf(snapshot.error);
    const error = textOf(message) && `${excerpt(message, CONTEXT)}`;
    this.#records.add({ type: 'stopped', actor: actor.id, status, ...(status === 'error' && error && { error }) });
  }

  #rememberEnd(sessionId: string): void {
    this.#ended.add(sessionId);
    const [oldest] = this.#ended;
    if (this.#ended.size > ENDED_MAX && oldest !== undefined) this.#ended.delete(oldest);
  }

  /**
   * Returns the actor. If the app never announced it, the actor is added first: the app connected late, or dropped the
   * message.
   */
  #actorOf(sessionId: string): AppActor | undefined {
    if (!this.#actors.has(sessionId)) this.#actor(sessionId, { name: sessionId });
    return this.#actors.get(sessionId);
  }

  #appOf(rootId: string, name: string): string {
    const existing = this.#apps.get(rootId);
    if (existing !== undefined) return existing;
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
