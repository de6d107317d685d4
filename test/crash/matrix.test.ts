/** A process ends after each append of twelve runs, on a store in memory (docs/internals/model.md, Effect Records). */
import { describe, expect, it } from 'vitest';
import { type Agent, createAgent, type LogEntry, type LogStore, memoryStore } from '../../src/index.ts';
import { storeWith } from '../support/agentBench.ts';
import { type CanonicalRun, canonicalModel, canonicalRuns, canonicalTools, goOn } from './canonicalRuns.ts';
import { expectSameEnd } from './compareRuns.ts';

function agentOf(run: CanonicalRun, store: LogStore, ran: string[]): Agent {
  const policies = { ...run.policies, modelRetry: { baseMs: 1 } };
  const tools = canonicalTools((key) => ran.push(key));
  return createAgent({ model: canonicalModel(run), tools, policies, store, cwd: '/' });
}

/** A store whose process dies when `at` appends are durable; the last one is never acknowledged. */
function dyingStore(at: number, died: () => void): { store: LogStore; log: LogEntry[] } {
  const inner = memoryStore();
  const log: LogEntry[] = [];
  let appends = 0;
  const store: LogStore = {
    ...inner,
    async open(id) {
      const handle = await inner.open(id);
      return {
        read: (from) => handle.read(from),
        close: () => handle.close(),
        async append(entries, expectedSeq) {
          if (appends >= at) return new Promise(() => undefined);
          await handle.append(entries, expectedSeq);
          log.push(...entries);
          appends += 1;
          if (appends < at) return;
          died();
          return new Promise(() => undefined);
        },
      };
    },
  };
  return { store, log };
}

async function uncut(run: CanonicalRun) {
  const ran: string[] = [];
  let appends = 0;
  const { store, log } = dyingStore(Number.POSITIVE_INFINITY, () => undefined);
  const counting: LogStore = {
    ...store,
    async open(id) {
      const handle = await store.open(id);
      return {
        ...handle,
        append: (entries, seq) => {
          appends += 1;
          return handle.append(entries, seq);
        },
      };
    },
  };
  const conversation = await agentOf(run, counting, ran).open('c');
  await goOn(conversation, run);
  return { log, ran, appends };
}

describe.each(canonicalRuns)('$name', (run) => {
  it('it ends by itself', async () => {
    const { log, ran } = await uncut(run);
    expectSameEnd(log, log, ran);
  });

  it('INV-5, I20, I21, B12: interrupted after each append, it continues to the same end', async () => {
    const whole = await uncut(run);
    expect(whole.appends).toBeGreaterThan(3);
    for (let at = 1; at <= whole.appends; at++) {
      const ran: string[] = [];
      const cut = await new Promise<readonly LogEntry[]>((resolve) => {
        const { store, log } = dyingStore(at, () => setImmediate(() => resolve(log.slice())));
        void agentOf(run, store, ran)
          .open('c')
          .then((conversation) => goOn(conversation, run));
      });
      const restored = await agentOf(run, await storeWith(cut), ran).open('c');
      await goOn(restored, run);
      expectSameEnd(whole.log, restored.log(), ran);
      await restored.close();
    }
  });
});
