/**
 * Yields every edge of a chart once, each after the shortest path to it, as pure transitions. Invariant: a trace
 * contains the events, entries, requests, children and messages of the chart, but not its context.
 */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import type { Cases, EffectRequest, EffectValue, NewEntry } from '../../machines/index.ts';
import { Explorer, type Situation } from '../../src/testing/chartPaths/chartExplorer.ts';
import { withStubs } from '../../src/testing/chartPaths/childStub.ts';
import { loggedBy, type Sent, sentBy, startedBy } from '../../src/testing/chartPaths/effectAnswers.ts';

export type Came = { readonly type: string };
export interface Spawned {
  readonly type: 'spawn';
  id: string;
  src: string;
  input: unknown;
}
type Of<T extends NewEntry['type']> = Extract<NewEntry, { type: T }>;

/** One step with all earlier steps. */
export class Trace {
  readonly chart: AnyStateMachine;
  readonly input: unknown;
  readonly before: Trace | undefined;
  /** Undefined for the start of the chart. */
  readonly event: Came | undefined;
  readonly situation: Situation;
  /** The step's appends, requests, new children, and messages to its parent and children. */
  readonly log: readonly NewEntry[];
  readonly asked: readonly EffectRequest[];
  readonly sentEvents: readonly Sent[];
  readonly spawned: readonly Spawned[];
  /** The vertex after the step. It is equal for equal futures, as far as guards can distinguish them. */
  vertex = '';
  /** All entries that are durable now. */
  readonly entries: readonly NewEntry[];

  constructor(chart: AnyStateMachine, input: unknown, situation: Situation, event?: Came, before?: Trace) {
    this.chart = chart;
    this.input = input;
    this.before = before;
    this.event = event;
    this.situation = situation;
    const { effects } = situation;
    this.log = loggedBy(effects);
    this.asked = startedBy(effects);
    this.sentEvents = sentBy(effects);
    this.spawned = [...effects.flatMap((effect) => (effect.type === 'spawn' ? [effect] : [])), ...this.#assigned()];
    this.entries = [...withoutLost(before?.entries ?? [], event), ...this.log];
  }

  /** Returns the children that a context update started. The state contains them, but no effect does. */
  #assigned(): Spawned[] {
    const { state, effects } = this.situation;
    const others = new Set<unknown>(Object.values(this.before?.state.children ?? {}));
    return Object.entries(state.children).flatMap(([id, child]) => {
      if (others.has(child) || effects.some((effect) => effect.type === 'spawn' && effect.id === id)) return [];
      const { src, options } = child as unknown as { src: string; options: { input?: unknown } };
      return [{ type: 'spawn' as const, id, src, input: options.input }];
    });
  }

  get state(): AnyMachineSnapshot {
    return this.situation.state;
  }

  /** The answer in this step, or undefined. */
  get answer(): EffectValue | undefined {
    return this.event?.type === 'effect.done' ? (this.event as unknown as { value: EffectValue }).value : undefined;
  }

  /** All steps up to this one, the first one first. */
  get steps(): readonly Trace[] {
    const steps: Trace[] = [];
    for (let step: Trace | undefined = this; step; step = step.before) steps.push(step);
    return steps.reverse();
  }

  all<T extends NewEntry['type']>(type: T): Of<T>[] {
    return this.entries.filter((entry): entry is Of<T> => entry.type === type);
  }

  now<T extends NewEntry['type']>(type: T): Of<T>[] {
    return this.log.filter((entry): entry is Of<T> => entry.type === type);
  }

  /** Returns the last answer of these kinds so far. */
  last<K extends EffectValue['kind']>(...kinds: K[]): Extract<EffectValue, { kind: K }> | undefined {
    for (let step: Trace | undefined = this; step; step = step.before) {
      const { answer } = step;
      if (answer && (kinds as string[]).includes(answer.kind)) return answer as Extract<EffectValue, { kind: K }>;
    }
    return undefined;
  }
}

const subjectOf = (entry: object): unknown =>
  'callId' in entry ? entry.callId : 'messageId' in entry ? entry.messageId : undefined;

/** Returns the entries without those that a failed append lost. */
function withoutLost(entries: readonly NewEntry[], event: Came | undefined): readonly NewEntry[] {
  if (event?.type !== 'append.failed') return entries;
  const remaining = [...entries];
  for (const gone of (event as unknown as { lost: readonly NewEntry[] }).lost) {
    const alike = (entry: NewEntry): boolean => entry.type === gone.type && subjectOf(entry) === subjectOf(gone);
    const at = remaining.map(alike).lastIndexOf(true);
    if (at >= 0) remaining.splice(at, 1);
  }
  return remaining;
}

/** Explores a chart with stubs for children, and asks for all facts that its paths depend on. */
export class Walk extends Explorer {
  constructor(machine: AnyStateMachine, { cases, projection }: Cases) {
    super({ machine: withStubs(machine), cases, projection });
  }

  takes({ state }: Situation, event: Came): boolean {
    return state.status === 'active' && state.can(event as never);
  }
}

/**
 * Yields the start, and then each edge that can be reached from it, the shortest paths first. After a step that changes
 * only values that no guard reads, the next steps are explored once more.
 */
export function* tracesOf(
  machine: AnyStateMachine,
  chart: Cases,
  input: unknown,
  explorer = new Walk(machine, chart),
): Generator<Trace> {
  const start = new Trace(machine, input, explorer.start(input));
  start.vertex = explorer.key(start.situation);
  yield start;
  const reached = new Map([[start.vertex, start]]);
  const nextOf = (trace: Trace, event: Came): Trace => {
    const next = new Trace(machine, input, explorer.next(trace.situation, event), event, trace);
    next.vertex = explorer.key(next.situation);
    return next;
  };
  for (const trace of reached.values()) {
    for (const event of explorer.events(trace.situation)) {
      const next = nextOf(trace, event);
      yield next;
      if (next.log.length > 0 && event.type !== 'append.failed') yield* lostBehind(next, nextOf, explorer);
      if (!reached.has(next.vertex)) reached.set(next.vertex, next);
      else if (next.vertex === trace.vertex && isChanged(trace, next)) {
        next.vertex = `${next.vertex} behind ${event.type}`;
        for (const later of explorer.events(next.situation)) yield nextOf(next, later);
      }
    }
  }
}

const error = { code: 'disk', message: 'no space left' };
/** Yields the steps after a refused append, until the end that it causes is stored. */
function* lostBehind(step: Trace, nextOf: (trace: Trace, event: Came) => Trace, explorer: Walk): Generator<Trace> {
  const refused = { type: 'append.failed', error, lost: step.log };
  if (!explorer.takes(step.situation, refused)) return;
  // A withdrawn message is not in the chart's queue, even if the log does not contain its return. This question is
  // open.
  if (step.now('message-returned').length > 0) return;
  const ended = nextOf(step, refused);
  ended.vertex = `${step.vertex} refused`;
  yield ended;
  for (const later of explorer.events(ended.situation)) {
    const { kind } = (later as { value?: { kind: string } }).value ?? {};
    if (kind === 'committed') yield nextOf(ended, later);
  }
}

const isChanged = ({ state: before }: Trace, { state }: Trace): boolean =>
  before.context !== state.context && JSON.stringify(before.context) !== JSON.stringify(state.context);

export interface ChartInvariant {
  /** The clause of the requirement, and its text. */
  readonly says: string;
  /** Checks the last step and the earlier ones. Throws if the clause is violated. */
  readonly holds: (trace: Trace) => void;
}

/** Returns a step in words, for messages. */
export const stepsInWords = ({ steps }: Trace): string =>
  steps
    .map(({ event, answer, state }) => {
      const value = JSON.stringify(state.value);
      return event ? `${event.type}${answer ? ` ${answer.kind}` : ''} → ${value}` : value;
    })
    .join(' | ');
