/**
 * One of the twelve runs in a process of its own that ends itself with SIGKILL the moment its nth append is durable.
 * Rule: it is bundled from the real sources; every execution is written to a file before it happens.
 */
import { appendFileSync } from 'node:fs';
import { createAgent, type LogStore } from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { canonicalModel, canonicalRuns, canonicalTools, goOn } from './canonical.ts';

const [, , name, directory = '', ledger = '', at = '0'] = process.argv;
const run = canonicalRuns.find((each) => each.name === name);
if (!run) throw new Error(`no run is named ${name}`);

let appends = 0;
function killing(inner: LogStore): LogStore {
  return {
    list: () => inner.list(),
    delete: (id) => inner.delete(id),
    async open(id) {
      const handle = await inner.open(id);
      return {
        read: (from) => handle.read(from),
        close: () => handle.close(),
        async append(entries, expectedSeq) {
          await handle.append(entries, expectedSeq);
          appends += 1;
          if (appends === Number(at)) process.kill(process.pid, 'SIGKILL');
        },
      };
    },
  };
}

const agent = createAgent({
  model: canonicalModel(run),
  tools: canonicalTools((key) => appendFileSync(ledger, `${key}\n`)),
  policies: { ...run.policies, modelRetry: { baseMs: 1 } },
  store: killing(jsonlStore(directory)),
  cwd: '/',
});
const conversation = await agent.open('c');
await goOn(conversation, run);
process.stdout.write(`${appends}`);
await agent.close();
