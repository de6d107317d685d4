/**
 * Where simulated lives have been: every arrow of the charts, and every state in which an act or a crash met them. Rule:
 * an arrow is known by the head of the tape that first led along it, so that other lives can be sent there.
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
/** What comes from outside, by the event of the chart that takes it. */
const ACTS: Readonly<Record<string, string>> = {
  'cancel.requested': 'cancel',
  'message.sent': 'message',
  'decision.arrived': 'decision',
};

const LIVES_KEPT = 12;
export interface Arrow {
  /** Ids of the state it leaves and of those it leads to. */
  readonly source: string;
  readonly targets: readonly string[];
  readonly name: string;
  /** The first lives that took it, and how many of their choices led there: each goes wrong in its own way. */
  readonly taken: { readonly seed: number; readonly choices: number }[];
}
type Ref = AnyActorRef & { logic: { id?: string }; _parent?: AnyActorRef };

export class Atlas {
  readonly arrows = new Map<string, Arrow>();
  /** By state: which acts, or a crash, came while a chart stood there. */
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

  /** Places that some act, or a crash, has not met yet. */
  get thin(): string[] {
    const most = Object.keys(ACTS).length + 1;
    return [...this.met].flatMap(([place, acts]) => (acts.size < most ? [place] : []));
  }

  /** To be told what happens in the life of a seed. */
  follow(seed: number): (event: unknown, choices: number) => void {
    this.#values.clear();
    return (told, choices) => {
      const event = told as InspectionEvent;
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

  /** A conversation begins while another process's is still under way. */
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
