/**
 * Reads the log of a run as it grows, and updates the session and the callbacks (docs/internals/contracts.md, 2.5, 3
 * and 5). Invariant: entries are processed in order, and each changes the session before a callback receives it. A
 * callback that throws fails the run, except for signals to an interface.
 */
import { type LogEntry, textOfContent, usageOf } from '../../machines/internal.ts';
import { callHarmlessly } from '../timeLimit.ts';
import type { Follower } from './loopRun.ts';
import { NodeFold } from './nodes.ts';
import { labelOf, markObserved, observeResponse, observeReturns, type RequestCallbacks } from './observation.ts';
import type { OpenSession } from './session.ts';

/** Updates the registry for each call, and announces each batch. */
export class CallFollower implements Follower {
  protected readonly own: OpenSession;
  protected callbacks: RequestCallbacks;
  /** The names of the reply's calls, until the batch is announced. */
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
        const resultText = textOfContent(entry.content);
        if (entry.outcome === 'failed') toolRegistry.fail(entry.callId, resultText);
        else if (entry.outcome !== 'succeeded') toolRegistry.cancel(entry.callId, resultText);
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
    callHarmlessly(() => this.callbacks.toolStartCallback?.(label));
  }
}

/** Also updates everything else that a request changes: nodes, returns, iterations, thoughts, usage and notices. */
export class RequestFollower extends CallFollower {
  readonly fold = new NodeFold();

  override take(entry: LogEntry): unknown {
    super.take(entry);
    const change = this.fold.take(entry);
    if (change && 'node' in change) {
      const { runtime } = this.own.session;
      runtime.currentIteration = change.index;
      runtime.iterationCount = change.index;
      markObserved(change.node);
      observeResponse(change.node, this.own, entry.type === 'model-reply' ? entry.costUsd : null);
    }
    const bySubAgent = entry.type === 'extension' ? usageOf(entry) : undefined;
    if (bySubAgent) this.own.add(bySubAgent);
    if (entry.type === 'notice' && entry.code === 'empty_reply') {
      callHarmlessly(() => this.callbacks.noticeCallback?.(entry.text));
    }
    if (!change || !('returns' in change)) return undefined;
    return observeReturns(change.returns, this.own, this.callbacks.toolResultCallback);
  }

  /** Undefined without a callback, because stream signals are made only for listeners. */
  get hear(): ((delta: string) => unknown) | undefined {
    return this.callbacks.streamingCallback && ((delta) => this.callbacks.streamingCallback?.(delta));
  }
}
