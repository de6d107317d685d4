/**
 * A doomed run on a real disk. Its moments are also in the nth write to the log, after it, and after its sync: `write:3:40` is 40 bytes
 * into the third write, `written` and `synced` have a number. Invariant: the file is bundled from the real sources.
 */
import { fstatSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { jsonlStore } from '../../src/node.ts';
import { closeNotes, detail, die, note, number, place, runOn, what } from './doomedProcess.ts';

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
disk.write = async function (data, offset = 0, ...rest) {
  const isLog = data.toString('utf8', offset, offset + 200).includes('"seq":');
  if (!isLog) return write.call(this, data, offset, ...rest);
  writes += 1;
  const here = writes === number;
  note({ write: writes, bytes: data.length - offset });
  if (here && what === 'write') {
    if (Number(detail) > 0) await write.call(this, data, offset, Math.min(Number(detail), data.length - offset));
    die();
  }
  const written = await write.call(this, data, offset, ...rest);
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

await runOn(jsonlStore(place, { durability: 'power' }), { isDue: () => writes === number });
closeNotes();
