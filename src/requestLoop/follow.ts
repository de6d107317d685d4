/**
 * What a run's log says, told to the session and to the callbacks as it is said (agent-loop-contract 2.5, 3, 5). Rule: entries
 * are taken in order, and each changes the session before anybody is told; what a callback throws is the run's failure, but
 * for those that are a signal to an interface.
 */
import { type LogEntry, textOfContent, usageOf } from '../../machines/internal.ts';
import type { Follower } from './loopRun.ts';
import { NodeFold } from './nodes.ts';
import { labelOf, markObserved, observeResponse, observeReturns, type RequestCallbacks } from './observation.ts';
import type { OpenSession } from './session.ts';

/** What a callback may throw without any consequence (agent-loop-contract 1.1: best effort). */
function signal(act: () => void): void {
  try {
    act();
  } catch {
    // An interface that cannot show it is no reason to stop working.
  }
}

/** The way of each call through the registry, and the start of each batch. */
export class CallFollower implements Follower {
  protected readonly own: OpenSession;
  protected callbacks: RequestCallbacks;
  /** The names of the reply's calls, until they are announced. */
  #batch: string[] = [];

  constructor(own: OpenSession, callbacks: RequestCallbacks) {
    this.own = own;
    this.callbacks = callbacks;
  }

  quiet(): void {
    this.callbacks = {};
  }

  take(entry: LogEntry): void {
    const { toolRegistry } = this.own.session.runtime;
    switch (entry.type) {
      case 'agent-output': {
        const { item } = entry;
        if (item.type !== 'tool-call') return;
        this.#batch.push(item.name);
        return toolRegistry.register(item.callId, item.name, item.args ?? item.argsText ?? {});
      }
      case 'tool-started':
        this.#announce();
        return toolRegistry.start(entry.callId);
      case 'tool-result': {
        const said = textOfContent(entry.content);
        if (entry.outcome === 'failed') toolRegistry.fail(entry.callId, said);
        else if (entry.outcome !== 'succeeded') toolRegistry.cancel(entry.callId, said);
        return;
      }
      case 'checkpoint':
        if (entry.boundary === 'ToolResultsCommitted') this.#batch = [];
    }
  }

  #announce(): void {
    if (this.#batch.length === 0) return;
    const label = labelOf(this.#batch.splice(0));
    this.own.session.runtime.batchCounter += 1;
    signal(() => this.callbacks.toolStartCallback?.(label));
  }
}

/** The same with all that a request changes: nodes, returns, iterations, thoughts, usage and notices. */
export class RequestFollower extends CallFollower {
  readonly fold = new NodeFold();

  override take(entry: LogEntry): void {
    super.take(entry);
    const made = this.fold.take(entry);
    if (made && 'node' in made) {
      const { runtime } = this.own.session;
      runtime.currentIteration = made.index;
      runtime.iterationCount = made.index;
      markObserved(made.node);
      observeResponse(made.node, this.own, entry.type === 'model-reply' ? entry.costUsd : null);
    }
    if (made && 'returns' in made) observeReturns(made.returns, this.own, this.callbacks.toolResultCallback);
    const bySubAgent = entry.type === 'extension' ? usageOf(entry) : undefined;
    if (bySubAgent) this.own.add(bySubAgent);
    if (entry.type === 'notice' && entry.code === 'empty_reply') {
      signal(() => this.callbacks.noticeCallback?.(entry.text));
    }
  }

  /** There where somebody listens: signals of a stream are made for listeners only. */
  get hear(): ((delta: string) => unknown) | undefined {
    return this.callbacks.streamingCallback && ((delta) => this.callbacks.streamingCallback?.(delta));
  }
}
