/** The tutorial from its first step to its last, with a scripted model and a temporary directory. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'runchart/client';
import { runScript } from 'runchart/testing';
import { makeAgent } from './tutorial/agent.ts';
import { ask, resume } from './tutorial/ask.ts';
import { serve } from './tutorial/server.ts';

const home = process.cwd();
const place = await mkdtemp(join(tmpdir(), 'runchart-tutorial-'));
process.chdir(place);

await ask();
await resume();

const { server, close } = await serve(0);
await once(server, 'listening');
const { port } = server.address() as { port: number };
// #region client
const client = connect({
  baseURL: `http://127.0.0.1:${port}/api`,
  headers: { authorization: 'Bearer secret' },
});
const conversation = await client.open('page');
console.log(await conversation.send('How much is there?').text);
// #endregion
await client.close();
await close();

// #region test
const { result, log } = await runScript(
  (world) => makeAgent(world),
  [
    { do: 'send', text: 'Pay the rent.' },
    { do: 'reply', calls: [{ name: 'transfer', args: { to: 'the landlord', euros: 900 } }] },
    { do: 'crash' },
    { do: 'decide', call: 1, action: 'deny' },
    { do: 'resume' },
    { do: 'reply', text: 'The rent was not paid.' },
  ],
);
console.log(result.reason, log.filter(({ type }) => type === 'tool-started').length);
// #endregion
process.chdir(home);
await rm(place, { recursive: true });
