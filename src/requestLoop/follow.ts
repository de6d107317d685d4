/**
 * Follows the run of a request: tells the session and the callbacks what its log says, as it says it. Rule: entries are taken
 * in order; what a callback throws is remembered as the first failure, and nothing is told behind it.
 */
import type { LogEntry } from '../../machines/internal.ts';
import type { Live } from '../live.ts';
import { type Node, NodeFold, textOf } from './nodes.ts';
import { labelOf, observeResponse, observeReturns, type RequestCallbacks } from './observation.ts';
import type { OpenSession } from './session.ts';

/** What a callback may throw without any consequence: it is a signal to an interface (agent-loop-contract 1.1). */
function signal(act: () => void): void {
  try {
    act();
  } catch {
    // An interface that cannot show it is no reason to stop working.
  }
}

export class RunFollower {
  readonly fold = new NodeFold();
  readonly #own: OpenSession;
  #callbacks: RequestCallbacks;
  readonly #failed: (error: unknown) => void;
  /** The batch under way was announced. */
  #announced = false;

  constructor(own: OpenSession, callbacks: RequestCallbacks, failed: (error: unknown) => void) {
    this.#own = own;
    this.#callbacks = callbacks;
    this.#failed = failed;
  }

  take(entry: LogEntry): void {
    try {
      this.#call(entry);
      const made = this.fold.take(entry);
      if (made && 'node' in made) this.#node(made.node, entry);
      if (made && 'returns' in made) observeReturns(made.returns, this.#own, this.#callbacks.toolResultCallback);
      if (entry.type === 'notice' && entry.code === 'empty_reply') {
        signal(() => this.#callbacks.noticeCallback?.(entry.text));
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Nobody is told anything any more; the session still is. */
  quiet(): void {
    this.#callbacks = {};
  }

  /** Tells of a delta when those before it were heard; answers when it was heard too. */
  hear(live: Live, before: Promise<void>): Promise<void> {
    // What a sub-agent says is not this request's answer.
    if (live.type !== 'text-delta' || live.path) return before;
    return before.then(() => this.#callbacks.streamingCallback?.(live.text)).catch((error) => this.#failed(error));
  }

  /** A call's way through the registry. */
  #call(entry: LogEntry): void {
    const { toolRegistry } = this.#own.session.runtime;
    switch (entry.type) {
      case 'agent-output': {
        const { item } = entry;
        if (item.type === 'tool-call') toolRegistry.register(item.callId, item.name, item.args ?? item.argsText ?? {});
        return;
      }
      case 'tool-started':
        this.#announce();
        return toolRegistry.start(entry.callId);
      case 'tool-result': {
        const said = textOf(entry.content);
        if (entry.outcome === 'failed') toolRegistry.fail(entry.callId, said);
        else if (entry.outcome !== 'succeeded') toolRegistry.cancel(entry.callId, said);
      }
    }
  }

  #announce(): void {
    if (this.#announced) return;
    this.#announced = true;
    this.#own.session.runtime.batchCounter += 1;
    signal(() => this.#callbacks.toolStartCallback?.(labelOf(this.fold.batch)));
  }

  #node(node: Node, entry: LogEntry): void {
    const { runtime } = this.#own.session;
    this.#announced = false;
    runtime.currentIteration = this.fold.nodes.length;
    runtime.iterationCount = this.fold.nodes.length;
    observeResponse(node, this.#own, entry.type === 'model-reply' ? entry.costUsd : null);
  }
}
