/**
 * A thread that runs untrusted regular expressions. Rule: matching never happens on the thread of the runs, so that a
 * pattern that backtracks for ever holds nothing up; an abort and the end of the time for a batch stop the wait, and
 * `end` kills the thread in the middle of a match.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Pattern } from './pattern.ts';
import { type Refusal, refused } from './workspace.ts';

/** Index of a text that matches and the place of its first match. */
export type Hit = readonly [index: number, at: number];

export interface Matcher {
  /** The first `hitsMax` texts that match. One batch at a time. Rejects with the signal's reason on abort. */
  match(pattern: Pattern, texts: readonly string[], hitsMax: number): Promise<{ kind: 'hits'; hits: Hit[] } | Refusal>;
  /** Always called, however the last match ended. */
  end(): Promise<void>;
}

type Reply = { hits: Hit[] } | { error: string };

const BATCH_MS = 1_500;

/** As text, so that it runs alike from sources and from the built package. */
const THREAD = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', ({ source, flags, texts, hitsMax }) => {
  try {
    const expression = new RegExp(source, flags);
    const hits = [];
    for (let index = 0; index < texts.length && hits.length < hitsMax; index += 1) {
      const at = texts[index].search(expression);
      if (at >= 0) hits.push([index, at]);
    }
    parentPort.postMessage({ hits });
  } catch (error) {
    parentPort.postMessage({ error: String(error) });
  }
});`;

/** Starts the thread; the caller ends it. `batchMs` is the longest a single batch may take. */
export function startMatcher(signal: AbortSignal, batchMs = BATCH_MS): Matcher {
  const resourceLimits = { maxOldGenerationSizeMb: 128 };
  const worker = new Worker(THREAD, { eval: true, env: {}, execArgv: [], resourceLimits });
  // A thread that fails between two batches must not become an uncaught exception.
  worker.on('error', () => undefined);

  return {
    async match({ source, flags }, texts, hitsMax) {
      signal.throwIfAborted();
      const over = new AbortController();
      const end = (): void => over.abort();
      const timer = setTimeout(end, batchMs);
      signal.addEventListener('abort', end);
      try {
        const answered = once(worker, 'message', { signal: over.signal });
        worker.postMessage({ source, flags, texts, hitsMax });
        const [reply] = (await answered) as [Reply];
        return 'hits' in reply ? { kind: 'hits', hits: reply.hits } : unusable(reply.error);
      } catch (error) {
        signal.throwIfAborted();
        return over.signal.aborted ? tooSlow(batchMs) : unusable(String(error));
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
      }
    },
    async end() {
      await worker.terminate();
    },
  };
}

const unusable = (reason: string): Refusal => refused('invalid_arguments', `the pattern cannot be run: ${reason}`);

const tooSlow = (ms: number): Refusal =>
  refused('timeout', `the pattern took longer than ${ms} ms on one batch and was stopped; give a simpler one`);
