/**
 * A chart under the real driver and a scripted journal, one event at a time. Rule: each event comes the way it would in
 * a living conversation: answers to the actor that asked, a child's end from the child, the rest as acts.
 */
import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, InspectedEventEvent, InspectionEvent } from 'xstate';
import type { Completion, EffectRequest, NewEntry } from '../../machines/internal.ts';
import { Driver } from '../runtime/driver.ts';
import type { Interpreter } from '../runtime/interpreter/interpreter.ts';
import { xstate } from '../runtime/interpreter/xstate.ts';
import { type AnswerEvent, answered, isAnswer, type Sent, stillOpen } from './answers.ts';
import { ScriptedJournal } from './scriptedJournal.ts';
import { type StubEvent, withStubs } from './stub.ts';

/** What has happened so far, for invariants that look further than the state. */
export interface Seen {
  readonly journal: ScriptedJournal;
  /** The events delivered up to now. */
  readonly events: readonly { readonly type: string }[];
  /** Every actor that there was, the chart's own the first. */
  readonly actors: readonly AnyActorRef[];
  /** What the chart told its children and its parent. */
  readonly sent: readonly Sent[];
}
/** What the last step did. */
export interface Step {
  readonly log: readonly NewEntry[];
  readonly asking: readonly EffectRequest[];
  readonly telling: readonly Sent[];
  /** The state values on the way, each once where it stays. */
  readonly way: readonly unknown[];
}
/** Child charts: stand-ins that end when they are told to, or the real ones. */
export type Children = 'stubbed' | 'real';

const ready: Record<Children, WeakMap<AnyStateMachine, AnyStateMachine>> = {
  stubbed: new WeakMap(),
  real: new WeakMap(),
};
/** The chart with the driver's actions, built once: it is used for every path. */
function prepared(machine: AnyStateMachine, children: Children): AnyStateMachine {
  const known = ready[children].get(machine);
  if (known) return known;
  const chart = children === 'real' ? machine : withStubs(machine);
  ready[children].set(machine, chart);
  return chart;
}

export interface RideOptions {
  input: unknown;
  children?: Children;
  inspect?(event: InspectionEvent): void;
  /** XState where it is not given: it takes any chart. */
  interpreter?: Interpreter;
}

export class Ride implements Seen {
  readonly journal = new ScriptedJournal();
  readonly events: { readonly type: string }[] = [];
  readonly actors: AnyActorRef[] = [];
  readonly sent: Sent[] = [];
  readonly #driver: Driver;
  readonly #asks: boolean;
  readonly #inspect: ((event: InspectionEvent) => void) | undefined;
  #way: unknown[] = [];
  /** How much there was before the last step. */
  #before = { appends: 0, started: 0, sent: 0 };
  #broken: { error: unknown } | undefined;

  constructor(machine: AnyStateMachine, options: RideOptions) {
    const { input, children = 'stubbed', inspect, interpreter = xstate } = options;
    this.#inspect = inspect;
    this.#asks = 'ask' in machine.implementations.actions;
    this.#driver = new Driver({
      machine: prepared(machine, children),
      input,
      journal: this.journal,
      setTimer: () => () => {},
      admit: (event) => this.#admit(event),
      broke: (error) => {
        this.#broken = { error };
      },
      inspect: (event) => this.#see(event as InspectionEvent),
      interpreter,
    });
    this.#driver.start(0);
  }

  /** Throws what the chart threw, where it broke. */
  get state(): AnyMachineSnapshot {
    if (this.#broken) throw this.#broken.error;
    return this.#driver.root.getSnapshot() as AnyMachineSnapshot;
  }

  get step(): Step {
    const { appends, started, sent } = this.#before;
    return {
      log: this.journal.appends.slice(appends).flat(),
      asking: this.journal.started.slice(started),
      telling: this.sent.slice(sent),
      way: this.#way,
    };
  }

  /** Throws where nothing could bring this event now. */
  deliver(event: { readonly type: string }): void {
    const { appends, started } = this.journal;
    this.#before = { appends: appends.length, started: started.length, sent: this.sent.length };
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

  /** What was lost is not in the log, and a commit that was to wait for it never began. */
  #lose(event: Extract<Completion, { type: 'append.failed' }>): void {
    this.journal.keep(stillOpen([...this.journal.open.values()], event));
    this.journal.lose(event.lost);
    this.journal.put(event);
  }

  /** A child's end comes from the child, inside the step. */
  #admit(event: { type: string }): readonly { type: string }[] {
    if (!event.type.startsWith('xstate.done.actor.')) return [event];
    const { actorId, output } = event as unknown as { actorId: string; output: unknown };
    const child = this.state.children[actorId] as AnyActorRef | undefined;
    if (!child) throw new Error(`there is no child ${actorId} to end`);
    const done: StubEvent = { type: 'stub.done', output };
    child.send(done);
    return [];
  }

  #see(event: InspectionEvent): void {
    this.#inspect?.(event);
    if (event.type === '@xstate.actor') this.actors.push(event.actorRef as AnyActorRef);
    if (event.type === '@xstate.event') this.#hear(event);
    if (event.type !== '@xstate.microstep' || event.actorRef !== this.actors[0]) return;
    const { value } = event.snapshot as AnyMachineSnapshot;
    if (JSON.stringify(value) !== JSON.stringify(this.#way.at(-1))) this.#way.push(value);
  }

  /** A chart that is driven alone is its own parent. */
  #hear({ sourceRef, actorRef, event }: InspectedEventEvent): void {
    if (sourceRef !== this.actors[0] || event.type.startsWith('xstate.')) return;
    this.sent.push({ to: actorRef === sourceRef ? 'parent' : (actorRef as AnyActorRef).id, event });
  }
}
