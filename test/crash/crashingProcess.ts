/**
 * One of the twelve runs in a process on a real disk, which ends itself with SIGKILL at one moment. The moment is in
 * its nth write to the log, after it, after its sync or after its acknowledgement, or before or after the effect of its
 * nth tool call. Invariant: the file is bundled from the real sources. Each acknowledgement and each effect of a tool
 * is durable in a separate file before anything else happens.
 */
import { closeSync, fdatasyncSync, fstatSync, openSync, writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createAgent, type LogStore } from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { canonicalModel, canonicalRuns, canonicalTools, goOn } from './canonicalRuns.ts';

/**
 * `moment`: `write:3:40` is 40 bytes into the third write; `written`, `synced`, `acked`, `called` and `did` have a
 * number.
 */
const [, , name, directory = '', notes = '', moment = 'none'] = process.argv;
const run = canonicalRuns.find((each) => each.name === name);
if (!run) throw new Error(`no run is named ${name}`);
const [what, number = 0, bytes = 0] = moment.split(':').map((part, index) => (index === 0 ? part : Number(part)));

const die = (): void => void process.kill(process.pid, 'SIGKILL');
const paper = openSync(notes, 'a');
/** Durable before it returns. */
function note(line: object): void {
  writeSync(paper, `${JSON.stringify(line)}\n`);
  fdatasyncSync(paper);
}

type Write = (
  this: FileHandle,
  bytes: Buffer,
  offset?: number,
  ...rest: unknown[]
) => Promise<{ bytesWritten: number }>;
const probe = await open(process.execPath);
const disk = Object.getPrototypeOf(probe) as { write: Write; datasync(this: FileHandle): Promise<void> };
await probe.close();
const { write, datasync } = disk;
let writes = 0;
let dueSync = false;
disk.write = async function (given, offset = 0, ...rest) {
  const isLog = given.toString('utf8', offset, offset + 200).includes('"seq":');
  if (!isLog) return write.call(this, given, offset, ...rest);
  writes += 1;
  const here = writes === number;
  note({ write: writes, bytes: given.length - offset });
  if (here && what === 'write') {
    if (Number(bytes) > 0) await write.call(this, given, offset, Math.min(Number(bytes), given.length - offset));
    die();
  }
  const written = await write.call(this, given, offset, ...rest);
  if (here && what === 'written') die();
  dueSync = true;
  return written;
};
disk.datasync = async function () {
  await datasync.call(this);
  if (!dueSync) return;
  dueSync = false;
  note({ synced: fstatSync(this.fd).size });
  if (writes === number && what === 'synced') die();
};

function acknowledging(inner: LogStore): LogStore {
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
          note({ acked: entries });
          if (what === 'acked' && writes === number) die();
        },
      };
    },
  };
}

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
  store: acknowledging(jsonlStore(directory, { durability: 'power' })),
  cwd: '/',
});
const conversation = await agent.open('c');
await goOn(conversation, run);
await agent.close();
closeSync(paper);
