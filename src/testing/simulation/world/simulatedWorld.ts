/**
 * The surroundings of one simulated conversation: clock, timers, open operations, and the number of the current
 * process. Invariant: nothing happens unless the loop triggers it. The open operations of a dead process never end.
 */
import type { Completion, Delivery, Journal, Json } from '../../../../machines/internal.ts';
import type { SendOptions } from '../../../conversation/sendOptions.ts';
import type { Ports } from '../../../runtime/hostPorts.ts';
import { AgentProcesses } from '../../world/agentProcesses.ts';
import type { Tape } from '../choiceTape.ts';
import type { LifeChecks } from '../lifeChecks.ts';
import type { Profile } from '../profile.ts';
import { CallerCode } from './callerCode.ts';
import { drawArguments } from './drawArguments.ts';

/** An open operation that the loop may end. */
export interface Pending {
  port: 'model' | 'tool' | 'store' | 'plugin';
  settle(): void;
  /** Called if the process dies during the wait. */
  crash?(): void;
}
/** One model call, in the process with this number. */
export interface Stream {
  readonly signal: AbortSignal;
  readonly processId: number;
  isOver: boolean;
  /** The request was for a summary. */
  readonly sumsUp: boolean;
}
/** Final answers for schemas that the simulated agent itself provides. */
export interface FinalAnswers {
  /** Returns a message with a schema for its own answer, or undefined. */
  ask(text: string): { readonly text: string; readonly output: NonNullable<SendOptions['output']> } | undefined;
  /** Returns true if the system text contains a schema. */
  isAsked(system: string): boolean;
  /** Returns the model's answer instead of `words`. */
  answer(words: string, system: string): string;
}

/** An invariant that did not hold. */
export interface Violation {
  /** The name of the invariant. */
  invariant: string;
  /** A description of the fault. */
  detail: string;
}
const GROUPS = [
  ...(['tools', 'outcomes', 'decisions', 'receipts', 'stops', 'crashes', 'entries'] as const),
  ...(['overtaken', 'summaries'] as const),
] as const;
/** The groups of things that a simulation counts. */
export type Group = (typeof GROUPS)[number];
/** The id of the simulated conversation. Other ids belong to its sub-agents. */
export const CONVERSATION = 'simulated';
const VIOLATIONS_KEPT = 20;

export class SimulatedWorld extends AgentProcesses {
  readonly tape: Tape;
  readonly profile: Profile;
  /** The checks against the log. */
  checks: LifeChecks = {};
  finalAnswers: FinalAnswers | undefined;
  /** The code of the agent, which may wait in real time. Undefined if it never waits. */
  readonly callerCode: CallerCode | undefined;
  readonly violations: Violation[] = [];
  /** The number of injected faults by kind. */
  readonly faults = new Map<string, number>();
  readonly #reached = new Map<string, Map<string, number>>(GROUPS.map((group) => [group, new Map()]));
  /** Faults are switched off. */
  faultFree = false;
  /** The JSON Schemas of the offered tools by name. */
  readonly schemas = new Map<string, Json>();
  /** All model calls. */
  readonly streams: Stream[] = [];
  pending: Pending[] = [];
  /** The agent takes its ids from these ports. */
  usesPorts = false;

  /** The caller's example arguments by tool. */
  readonly examples: { readonly [tool: string]: readonly Json[] };

  constructor(
    tape: Tape,
    profile: Profile,
    {
      examples = {},
      waitsInRealTime = true,
    }: { examples?: SimulatedWorld['examples'] | undefined; waitsInRealTime?: boolean } = {},
  ) {
    super();
    this.examples = examples;
    this.tape = tape;
    this.profile = profile;
    if (waitsInRealTime) this.callerCode = new CallerCode(this);
  }

  /** Returns the library's ports for the current process. */
  ports(): Pick<Ports, 'now' | 'newId' | 'random' | 'setTimer' | 'journal' | 'execute'> {
    const { newId, ...time } = this.timePorts();
    return {
      ...time,
      newId: () => {
        this.usesPorts = true;
        return newId();
      },
      random: () => this.tape.next(1000) / 1000,
      ...(this.callerCode && { execute: this.callerCode.execute }),
      ...((this.callerCode || this.profile.deliveredTwice > 0) && { journal: (embedded) => this.#journal(embedded) }),
    };
  }

  #journal(embedded: Journal): Journal {
    const followed = this.callerCode?.following(embedded) ?? embedded;
    return this.profile.deliveredTwice > 0 ? deliveredAgain(this, followed) : followed;
  }

  /** Returns true with this probability, and never after faults are switched off. */
  fault(kind: string, share: number): boolean {
    if (this.faultFree || share === 0 || !this.tape.chance(share)) return false;
    this.count(kind);
    return true;
  }

  count(kind: string): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
  }

  /** Returns arguments that a tool's schema accepts. */
  argsFor(tool: string): Json {
    return drawArguments(this.tape, this.schemas.get(tool), this.examples[tool]);
  }

  /** Counts an occurrence that simulations must reach. */
  reach(group: string, kind: string): void {
    const counts = this.#reached.get(group) ?? new Map<string, number>();
    this.#reached.set(group, counts);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }

  /** The number of each occurrence. */
  get reached(): Readonly<Record<Group, Readonly<Record<string, number>>>> {
    const groups = [...this.#reached].map(([group, counts]) => [group, Object.fromEntries(counts)]);
    return Object.fromEntries(groups) as Record<Group, Record<string, number>>;
  }

  violate(invariant: string, detail: string): void {
    if (this.violations.length < VIOLATIONS_KEPT) this.violations.push({ invariant, detail });
  }

  check(condition: boolean, invariant: string, detail: () => string): void {
    if (!condition) this.violate(invariant, detail());
  }

  /** Waits until the loop ends the operation. It never resolves if its process dies before. */
  wait(port: Pending['port'], crash?: () => void): Promise<void> {
    const { processId } = this;
    return new Promise((resolve) => {
      if (processId !== this.processId) return;
      this.pending.push({ port, settle: resolve, ...(crash && { crash }) });
    });
  }

  settle(index: number): void {
    const [pending] = this.pending.splice(index, 1);
    pending?.settle();
  }

  /** Fires the next timer. Returns false if there is none. A timer with infinite time never fires. */
  ring(): boolean {
    return this.clock.ring(undefined, Number.MAX_VALUE);
  }

  /** The milliseconds since the start. A change of the wall clock does not affect them. */
  get elapsedMs(): number {
    return this.clock.elapsedMs;
  }

  /** Ends the process and all its operations. */
  override crash(): void {
    const { pending } = this;
    this.pending = [];
    this.clock.forget();
    // The dying process wrote the remains of a torn append.
    for (const { crash } of pending) crash?.();
    super.crash();
  }
}

export function deliveredAgain(world: SimulatedWorld, inner: Journal): Journal {
  let again: Delivery[] = [];
  return {
    start: (request) => inner.start(request),
    put: (completion) => inner.put(completion),
    append: (entries, at, carried) => inner.append(entries, at, carried),
    bell: (ring) => inner.bell(ring),
    drop(prefix) {
      again = again.filter(({ completion }) => !idOf(completion)?.startsWith(prefix));
      inner.drop(prefix);
    },
    take() {
      if (again.length > 0 && world.tape.chance(0.5)) return again.shift();
      const delivery = inner.take();
      if (
        delivery &&
        idOf(delivery.completion) !== undefined &&
        world.fault('delivered-twice', world.profile.deliveredTwice)
      ) {
        again.push(delivery);
      }
      return delivery;
    },
  };
}

const idOf = (completion: Completion): string | undefined => ('id' in completion ? completion.id : undefined);
