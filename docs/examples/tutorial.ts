/** The tutorial from its first step to its last, with a scripted model and a temporary directory. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const home = process.cwd();
const place = await mkdtemp(join(tmpdir(), 'runchart-tutorial-'));
process.chdir(place);
const free = createServer().listen(0, '127.0.0.1');
await once(free, 'listening');
process.env.PORT = String((free.address() as { port: number }).port);
await new Promise((closed) => free.close(closed));
// The address of the inspector differs each time.
const { log } = console;
console.log = (...values: unknown[]) =>
  log(...values.map((value) => (typeof value === 'string' ? value.replace(/:\d+\/\?token=.*/, ':…') : value)));

// #region steps
await import('./tutorial/ask.ts');
await import('./tutorial/pay.ts');
await import('./tutorial/approve.ts');
const { close } = await import('./tutorial/server.ts');
await import('./tutorial/client.ts');
await close();
await import('./tutorial/story.ts');
// #endregion

process.chdir(home);
await rm(place, { recursive: true });
