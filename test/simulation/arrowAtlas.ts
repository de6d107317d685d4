/**
 * Records the places that simulated lives reach: every arrow of the charts, and every state in which an act or a crash
 * occurred. Invariant: the prefix of a tape identifies an arrow, so that other lives can be sent there.
 */
import type { AnyActorRef, AnyStateMachine, InspectionEvent } from 'xstate';
import {
  compactionMachine,
  conversationMachine,
  resumeToolCallMachine,
  runMachine,
  toolCallMachine,
  toolRoundMachine,
} from '../../machines/index.ts';
import { keyOf, listsOf, nodesOf } from '../../src/diagrams/chartNodes.ts';

/** LLM_CALL's states are inside RUN, where its arrows are counted. */
const CHARTS: readonly AnyStateMachine[] = [
  conversationMachine,
  runMachine,
  toolRoundMachine,
  toolCallMachine,
  resumeToolCallMachine,
  compactionMachine,
];
/** The acts from outside, by the chart's event. */
const ACTS: Readonly<Record<string, string>> = {
  'cancel.requested': 'cancel',
  'message.sent': 'message',
  'decision.arrived': 'decision',
};

const LIVES_KEPT = 12;
export interface Arrow {
  /** The ids of its source state and its target states. */
  readonly source: string;
  readonly targets: readonly string[];
  readonly name: string;
  /** The first lives that took the arrow, and the number of choices before it. Each of them continues differently. */
  readonly taken: { readonly seed: number; readonly choices: number }[];
}
type Ref = AnyActorRef & { logic: { id?: string }; _parent?: AnyActorRef };

export class Atlas {
  readonly arrows = new Map<string, Arrow>();
  /** By state: the acts and crashes that occurred in it. */
  readonly met = new Map<string, Set<string>>();
  readonly #values = new Map<Ref, string>();

  constructor() {
    for (const chart of CHARTS) {
      for (const node of nodesOf(chart.root)) {
        for (const [event, list] of listsOf(node)) {
          for (const definition of list) {
            const targets = definition.target?.map(({ id }) => id) ?? [];
            this.arrows.set(keyOf(definition), {
              ...{ source: node.id, targets },
              ...{ name: nameOf(node.id, event, definition), taken: [] },
            });
          }
        }
      }
    }
  }

  /** The states in which some act or a crash has not occurred yet. */
  get thin(): string[] {
    const most = Object.keys(ACTS).length + 1;
    return [...this.met].flatMap(([place, acts]) => (acts.size < most ? [place] : []));
  }

  /** Returns a function that records the events in the life of a seed. */
  follow(seed: number): (event: unknown, choices: number) => void {
    this.#values.clear();
    return (inspected, choices) => {
      const event = inspected as InspectionEvent;
      const ref = event.actorRef as Ref;
      if (event.type === '@xstate.actor' && !ref._parent) this.#crashed();
      else if (event.type === '@xstate.event') this.#acted(ref, event.event.type);
      else if (event.type === '@xstate.snapshot')
        this.#stands(ref, event.snapshot as { status: string; value?: unknown });
      else if (event.type === '@xstate.microstep') {
        for (const definition of event._transitions) {
          const taken = this.arrows.get(keyOf(definition))?.taken;
          if (taken && taken.length < LIVES_KEPT && taken.at(-1)?.seed !== seed) taken.push({ seed, choices });
        }
      }
    };
  }

  #stands(ref: Ref, { status, value }: { status: string; value?: unknown }): void {
    if (status === 'active' && value !== undefined) this.#values.set(ref, leafOf(value));
    else this.#values.delete(ref);
  }

  #acted(ref: Ref, type: string): void {
    const act = ACTS[type];
    if (act && !ref._parent) this.#meets(act);
  }

  /** A conversation may start while another process's conversation is active. */
  #crashed(): void {
    this.#meets('crash');
    this.#values.clear();
  }

  #meets(act: string): void {
    for (const [{ logic }, value] of this.#values) {
      const place = `${logic.id}.${value}`;
      const acts = this.met.get(place) ?? new Set();
      this.met.set(place, acts.add(act));
    }
  }
}

type Named = { readonly guard?: unknown; readonly target?: readonly { id: string }[] | undefined };
function nameOf(source: string, event: string, { guard, target }: Named): string {
  const on = [event, typeof guard === 'string' && `[${guard}]`].filter(Boolean).join(' ');
  return `${source} --> ${target?.map(({ id }) => id).join(' ') ?? source}${on && `: ${on}`}`;
}

const leafOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  const [[name, inner] = ['', '']] = Object.entries(value as Record<string, unknown>);
  return `${name}.${leafOf(inner)}`;
};
