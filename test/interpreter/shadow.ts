/**
 * Both interpreters at once: XState receives the same events as the compiled interpreter. Rule: after every delivery both have
 * logged, asked and dropped the same in the same order, and their trees of actors are equal. Otherwise it throws.
 */
import { deepStrictEqual } from 'node:assert';
import type { EffectRequest, NewEntry } from '../../machines/index.ts';
import { inspected } from '../../src/runtime/interpreter/inspection.ts';
import type {
  ChartRef,
  Interpreter,
  InterpreterOptions,
  RootChart,
} from '../../src/runtime/interpreter/interpreter.ts';
import { xstate } from '../../src/runtime/interpreter/xstate.ts';

export interface ShadowCount {
  /** Deliveries compared. */
  steps: number;
  /** The first difference of each conversation. */
  differences: string[];
}

/** State, context, output and children of a living chart, as values. */
export function treeOf(actor: ChartRef): unknown {
  const { status, value, context, output, children } = actor.getSnapshot();
  if (status === 'error') return { status };
  const inside = Object.entries((children ?? {}) as Record<string, ChartRef>).map(([id, child]) => [id, treeOf(child)]);
  return { status, value, context, output, inside };
}

class Shadow implements RootChart {
  readonly id: string;
  readonly #count: ShadowCount;
  readonly #primary: RootChart;
  readonly #reference: RootChart;
  readonly #done: { primary: unknown[]; reference: unknown[] } = { primary: [], reference: [] };
  /** The actor of the reference that asked, by the id of the request. */
  readonly #askers = new Map<string, ChartRef>();
  #depth = 0;
  #isDifferent = false;

  constructor({ machine, input, world, onError, inspect }: InterpreterOptions, count: ShadowCount) {
    this.#count = count;
    const { primary, reference } = this.#done;
    this.#primary = inspected({
      machine,
      input,
      world: {
        ask: (asker, request) => {
          primary.push(['ask', asker.id, request]);
          world.ask(this.#both(asker, request), request);
        },
        drop: (prefix) => {
          primary.push(['drop', prefix]);
          world.drop(prefix);
        },
        log: (entries) => {
          primary.push(['log', entries]);
          world.log(entries);
        },
      },
      onError,
      ...(inspect && { inspect }),
    });
    this.#reference = xstate({
      machine,
      input,
      world: {
        ask: (asker, request: EffectRequest) => {
          reference.push(['ask', asker.id, request]);
          this.#askers.set(request.id, asker);
        },
        drop: (prefix) => reference.push(['drop', prefix]),
        log: (entries: readonly NewEntry[]) => reference.push(['log', entries]),
      },
      onError: () => {},
    });
    this.id = this.#primary.id;
  }

  start(): void {
    this.#step(
      () => this.#primary.start(),
      () => this.#reference.start(),
    );
  }

  stop(): void {
    this.#step(
      () => this.#primary.stop(),
      () => this.#reference.stop(),
    );
  }

  send(event: { type: string }): void {
    this.#step(
      () => this.#primary.send(event),
      () => this.#reference.send(event),
    );
  }

  /** An event for a child goes to the child of both interpreters. */
  getSnapshot(): unknown {
    const snapshot = this.#primary.getSnapshot();
    const others = this.#reference.getSnapshot().children as Record<string, ChartRef>;
    const wrapped = Object.entries(snapshot.children as Record<string, ChartRef>).map(([id, child]) => {
      const send = (event: { type: string }): void =>
        this.#step(
          () => child.send(event),
          () => others[id]?.send(event),
        );
      return [id, { id, send, getSnapshot: () => child.getSnapshot() }] as const;
    });
    return { ...snapshot, children: Object.fromEntries(wrapped) };
  }

  /** An answer reaches the actor that asked in either interpreter. */
  #both(asker: ChartRef, { id }: EffectRequest): ChartRef {
    return {
      id: asker.id,
      getSnapshot: () => asker.getSnapshot(),
      send: (event) =>
        this.#step(
          () => asker.send(event),
          () => this.#askers.get(id)?.send(event),
        ),
    };
  }

  #step(primary: () => void, reference: () => void): void {
    this.#depth += 1;
    primary();
    reference();
    this.#depth -= 1;
    if (this.#depth > 0 || this.#isDifferent) return;
    this.#count.steps += 1;
    try {
      const { primary: mine, reference: theirs } = this.#done;
      const text = (root: ChartRef, done: unknown[]): string =>
        JSON.stringify([done, treeOf(root)]).replaceAll(`"${root.id}"`, '"root"');
      const [ours, other] = [text(this.#primary, mine), text(this.#reference, theirs)];
      // Most texts are equal. Otherwise only the order of keys may differ.
      if (ours !== other) deepStrictEqual(JSON.parse(ours), JSON.parse(other));
      mine.length = 0;
      theirs.length = 0;
    } catch (error) {
      this.#isDifferent = true;
      this.#count.differences.push(String((error as Error).message).slice(0, 2_000));
    }
  }
}

/** A comparing interpreter, and its counts. */
export function shadowed(): { interpreter: Interpreter; count: ShadowCount } {
  const count: ShadowCount = { steps: 0, differences: [] };
  return { interpreter: (options) => new Shadow(options, count), count };
}
