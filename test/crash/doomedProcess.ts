/**
 * One of the twelve runs in a process that ends itself with SIGKILL at one moment: `acked`, `called` or `did` with a number, or a
 * moment of its store. Invariant: each acknowledgement and each effect of a tool is durable in a separate file before anything else
 * happens.
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { createAgent, type LogStore } from '../../src/index.ts';
import { canonicalModel, canonicalRuns, canonicalTools, goOn } from './canonicalRuns.ts';

const [, , name, path = '', notes = '', moment = 'none'] = process.argv;
const run = canonicalRuns.find((each) => each.name === name);
if (!run) throw new Error(`no run is named ${name}`);

/** The place of the log. */
export const place = path;
/** The moment: its kind, its number, and its other details. */
export const [what, number = 0, detail = 0] = moment
  .split(':')
  .map((part, index) => (index === 0 ? part : Number(part)));

export const die = (): void => void process.kill(process.pid, 'SIGKILL');
const paper = openSync(notes, 'a');
/** Durable before it returns. */
export function note(line: object): void {
  writeSync(paper, `${JSON.stringify(line)}\n`);
  fdatasyncSync(paper);
}

interface Moments {
  /** Called when an append was handed to the store. */
  asked?(): void;
  /** The acknowledged append is the one after which the process ends. */
  isDue(): boolean;
}

function acknowledging(inner: LogStore, { asked, isDue }: Moments): LogStore {
  return {
    list: () => inner.list(),
    delete: (id) => inner.delete(id),
    async open(id) {
      const handle = await inner.open(id);
      return {
        read: (from) => handle.read(from),
        close: () => handle.close(),
        async append(entries, expectedSeq) {
          const appending = handle.append(entries, expectedSeq);
          asked?.();
          await appending;
          note({ acked: entries });
          if (what === 'acked' && isDue()) die();
        },
      };
    },
  };
}

/** Carries out the run on the store. */
export async function runOn(store: LogStore, moments: Moments): Promise<void> {
  if (!run) return;
  let executions = 0;
  const agent = createAgent({
    model: canonicalModel(run),
    tools: canonicalTools(
      (key) => {
        executions += 1;
        if (what === 'called' && executions === number) die();
        note({ ran: key });
      },
      () => {
        if (what === 'did' && executions === number) die();
      },
    ),
    policies: { ...run.policies, modelRetry: { baseMs: 1 } },
    store: acknowledging(store, moments),
    cwd: '/',
  });
  await goOn(await agent.open('c'), run);
  await agent.close();
}

export const closeNotes = (): void => closeSync(paper);
