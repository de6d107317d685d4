/**
 * A chart under the real driver and a scripted journal, one event at a time. Invariant: each event comes as in a real
 * conversation: answers to the requesting actor, a child's end from the child, everything else as acts.
 */
import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, InspectedEventEvent, InspectionEvent } from 'xstate';
import type { Completion, EffectRequest, NewEntry } from '../../../machines/internal.ts';
import { Driver } from '../../runtime/driver.ts';
import type { Interpreter } from '../../runtime/interpreter/interpreter.ts';
import { xstate } from '../../runtime/interpreter/xstate.ts';
import { type StubEvent, withStubs } from './childStub.ts';
import { type AnswerEvent, answered, isAnswer, type Sent, stillOpen } from './effectAnswers.ts';
import { ScriptedJournal } from './scriptedJournal.ts';

/** Everything that has happened so far, for invariants that need more than the state. */
export interface Seen {
  /** The journal of the chart, with its entries and requests. */
  readonly journal: ScriptedJournal;
  /** The events delivered so far. */
  readonly events: readonly { readonly type: string }[];
  /** All actors so far. The chart's own is the first. */
  readonly actors: readonly AnyActorRef[];
  /** The events that the chart sent to its children and its parent. */
  readonly sent: readonly Sent[];
}
/** The effects of the last step. */
export interface Step {
  readonly log: readonly NewEntry[];
  readonly asking: readonly EffectRequest[];
  readonly telling: readonly Sent[];
  /** The intermediate state values, without repetitions. */
  readonly way: readonly unknown[];
}
/** Child charts: stubs that end on request, or the real ones. */
export type Children = 'stubbed' | 'real';

const ready: Record<Children, WeakMap<AnyStateMachine, AnyStateMachine>> = {
  stubbed: new WeakMap(),
  real: new WeakMap(),
};
/** Returns the chart with the driver's actions. It is built once and used for every path. */
function preparedChart(machine: AnyStateMachine, children: Children): AnyStateMachine {
  const existing = ready[children].get(machine);
  if (existing) return existing;
  const chart = children === 'real' ? machine : withStubs(machine);
  ready[children].set(machine, chart);
  return chart;
}

export interface DrivenChartOptions {
  input: unknown;
  children?: Children;
  inspect?(event: InspectionEvent): void;
  /** Default: XState, which accepts any chart. */
  interpreter?: Interpreter;
}

export class DrivenChart implements Seen {
  readonly journal = new ScriptedJournal();
  readonly events: { readonly type: string }[] = [];
  readonly actors: AnyActorRef[] = [];
  readonly sent: Sent[] = [];
  readonly #driver: Driver;
  readonly #asks: boolean;
  readonly #inspect: ((event: InspectionEvent) => void) | undefined;
  #way: unknown[] = [];
  /** The counts before the last step. */
  #countsBefore = { appends: 0, started: 0, sent: 0 };
  #broken: { error: unknown } | undefined;

  constructor(machine: AnyStateMachine, options: DrivenChartOptions) {
    const { input, children = 'stubbed', inspect, interpreter = xstate } = options;
    this.#inspect = inspect;
    this.#asks = 'ask' in machine.implementations.actions;
    this.#driver = new Driver({
      machine: preparedChart(machine, children),
      input,
      journal: this.journal,
      setTimer: () => () => {},
      admit: (event) => this.#admit(event),
      broke: (error) => {
        this.#broken = { error };
      },
      inspect: (event) => this.#observe(event as InspectionEvent),
      interpreter,
    });
    this.#driver.start(0);
  }

  /** Throws the chart's error if it has failed. */
  get state(): AnyMachineSnapshot {
    if (this.#broken) throw this.#broken.error;
    return this.#driver.root.getSnapshot() as AnyMachineSnapshot;
  }

  get step(): Step {
    const { appends, started, sent } = this.#countsBefore;
    return {
      log: this.journal.appends.slice(appends).flat(),
      asking: this.journal.started.slice(started),
      telling: this.sent.slice(sent),
      way: this.#way,
    };
  }

  /** Throws if nothing could deliver this event now. */
  deliver(event: { readonly type: string }): void {
    const { appends, started } = this.journal;
    this.#countsBefore = { appends: appends.length, started: started.length, sent: this.sent.length };
    this.#way = [];
    this.events.push(event);
    if (this.#asks && isAnswer(event)) return this.#answer(event);
    if (event.type === 'append.failed') return this.#lose(event as Extract<Completion, { type: 'append.failed' }>);
    const failed = event.type === 'effect.failed';
    this.journal.put(failed ? (event as Completion) : { type: 'act', event });
  }

  stop(): void {
    this.#driver.stop();
  }

  #answer(event: AnswerEvent): void {
    const request = answered(this.journal.open.values(), event);
    if (!request) {
      const open = [...this.journal.open.keys()];
      throw new Error(`nothing that is open takes ${JSON.stringify(event)}; open are: ${open.join(', ') || 'none'}`);
    }
    this.journal.answer(request, event as Parameters<ScriptedJournal['answer']>[1]);
  }

  /** Lost entries are not in the log, and a commit that waited for them never began. */
  #lose(event: Extract<Completion, { type: 'append.failed' }>): void {
    this.journal.keep(stillOpen([...this.journal.open.values()], event));
    this.journal.lose(event.lost);
    this.journal.put(event);
  }

  /** A child's end comes from the child, inside the step. */
  #admit(event: { type: string }): { type: string } | undefined {
    if (!event.type.startsWith('xstate.done.actor.')) return event;
    const { actorId, output } = event as unknown as { actorId: string; output: unknown };
    const child = this.state.children[actorId] as AnyActorRef | undefined;
    if (!child) throw new Error(`there is no child ${actorId} to end`);
    const done: StubEvent = { type: 'stub.done', output };
    child.send(done);
    return undefined;
  }

  #observe(event: InspectionEvent): void {
    this.#inspect?.(event);
    if (event.type === '@xstate.actor') this.actors.push(event.actorRef as AnyActorRef);
    if (event.type === '@xstate.event') this.#recordSent(event);
    if (event.type !== '@xstate.microstep' || event.actorRef !== this.actors[0]) return;
    const { value } = event.snapshot as AnyMachineSnapshot;
    if (JSON.stringify(value) !== JSON.stringify(this.#way.at(-1))) this.#way.push(value);
  }

  /** A chart that is driven alone is its own parent. */
  #recordSent({ sourceRef, actorRef, event }: InspectedEventEvent): void {
    if (sourceRef !== this.actors[0] || event.type.startsWith('xstate.')) return;
    this.sent.push({ to: actorRef === sourceRef ? 'parent' : (actorRef as AnyActorRef).id, event });
  }
}
