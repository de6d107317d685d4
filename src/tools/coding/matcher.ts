/**
 * Runs untrusted patterns. Rule: never on the thread of the runs, always in time that is linear in the text, and in
 * something that ends at once when it is told to: ripgrep's process where the machine has it, else a thread of
 * JavaScript. An abort and the end of the time for a batch stop the match, and `end` leaves nothing.
 */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type { Pattern } from './pattern.ts';
import { findRipgrep, ripgrepForm, runRipgrep } from './ripgrep.ts';
import { type Refusal, refused } from './workspace.ts';

/** Index of a text that matches and the place of its first match. */
export type Hit = readonly [index: number, at: number];
type Matched = { kind: 'hits'; hits: Hit[] } | Refusal;

export interface Matcher {
  /** The first `hitsMax` texts that match. One batch at a time. Rejects with the signal's reason on abort. */
  match(pattern: Pattern, texts: readonly string[], hitsMax: number): Promise<Matched>;
  /** Always called, however the last match ended. */
  end(): Promise<void>;
}

interface Batch {
  pattern: Pattern;
  texts: readonly string[];
  hitsMax: number;
}
type Reply = { hits: Hit[] } | { error: string };

const BATCH_MS = 1_500;
const require = createRequire(import.meta.url);

/** As text, so that it runs alike from sources and from the built package. */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads');
const { RE2JS } = require(workerData);
parentPort.on('message', ({ pattern: { source, inverted = false }, texts, hitsMax }) => {
  try {
    const expression = RE2JS.compile(source);
    const hits = [];
    for (let index = 0; index < texts.length && hits.length < hitsMax; index += 1) {
      const matcher = expression.matcher(texts[index]);
      if (matcher.find() !== inverted) hits.push([index, inverted ? 0 : matcher.start()]);
    }
    parentPort.postMessage({ hits });
  } catch (error) {
    parentPort.postMessage({ error: String(error.message) });
  }
});`;

function startThread(): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: 128 };
  const workerData = require.resolve('re2js');
  const worker = new Worker(THREAD, { eval: true, env: {}, execArgv: [], resourceLimits, workerData });
  // A thread that fails between two batches must not become an uncaught exception.
  return worker.on('error', () => undefined);
}

/** The caller ends it. `batchMs` is the longest a single batch may take. */
export function startMatcher(signal: AbortSignal, batchMs = BATCH_MS): Matcher {
  let thread: Worker | undefined;
  let program: Promise<string | undefined> | undefined;

  async function inProcess(batch: Batch, over: AbortSignal) {
    const { source, inverted } = batch.pattern;
    const form = inverted ? undefined : ripgrepForm(source);
    program ??= findRipgrep();
    const found = form === undefined ? undefined : await program;
    if (form === undefined || found === undefined) return undefined;
    const ran = await runRipgrep(found, { ...batch, form }, over);
    // What it does not take is for the library's engine to judge.
    return ran.kind === 'refused' ? undefined : ran;
  }

  async function inThread(batch: Batch, over: AbortSignal) {
    thread ??= startThread();
    const answered = once(thread, 'message', { signal: over });
    thread.postMessage(batch);
    const [reply] = (await answered) as [Reply];
    return 'hits' in reply ? ({ kind: 'hits', hits: reply.hits } as const) : unusable(reply.error);
  }

  return {
    async match(pattern, texts, hitsMax) {
      signal.throwIfAborted();
      const over = new AbortController();
      const end = (): void => over.abort();
      const timer = setTimeout(end, batchMs);
      signal.addEventListener('abort', end);
      const batch = { pattern, texts, hitsMax };
      try {
        const matched = (await inProcess(batch, over.signal)) ?? (await inThread(batch, over.signal));
        signal.throwIfAborted();
        return matched.kind === 'stopped' ? tooSlow(batchMs) : matched;
      } catch (error) {
        signal.throwIfAborted();
        return over.signal.aborted ? tooSlow(batchMs) : unusable(String(error));
      } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        // What is still at work on this batch would answer for the next one.
        if (over.signal.aborted) await stopThread();
      }
    },
    end: stopThread,
  };

  async function stopThread(): Promise<void> {
    const ended = thread?.terminate();
    thread = undefined;
    await ended;
  }
}

const unusable = (reason: string): Refusal =>
  refused(
    'invalid_arguments',
    `the pattern cannot be run: ${reason}; it must have the syntax of RE2, without lookaround and backreferences`,
  );

const tooSlow = (ms: number): Refusal =>
  refused('timeout', `the pattern took longer than ${ms} ms on one batch and was stopped; give a simpler one`);
