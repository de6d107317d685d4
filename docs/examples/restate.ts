// #region setup
import { createAgent, defineTool } from 'runchart';
import { openai } from 'runchart/openai';
import { blobDirectory, restateAgent, serveAgent } from 'runchart/restate';
import { createHandlers } from 'runchart/transports';
import { z } from 'zod';

const model = openai(process.env.OPENAI_MODEL ?? 'gpt-5.2');
// #endregion

// #region worker
const pay = defineTool({
  name: 'pay',
  description: 'Pays an invoice.',
  parameters: z.object({ invoice: z.string() }),
  needsApproval: true,
  execute: ({ invoice }) => `paid ${invoice}`,
});
const agent = createAgent({ model, tools: [pay] });

const worker = await serveAgent(agent, { port: 9080, admin: 'http://127.0.0.1:9070' });
console.log(`serves ${worker.url}`);
// #endregion

// #region client
const remote = restateAgent({ ingress: 'http://127.0.0.1:8080' });

const conversation = await remote.open('rent');
const result = await conversation.send('Pay invoice 7.').result;
console.log(result.termination);

export const handler = createHandlers(remote, { authorize: () => ({ by: 'somebody' }) });
// #endregion

// #region blobs
const store = blobDirectory('/shared/blobs');
await serveAgent(agent, { port: 9081, admin: 'http://127.0.0.1:9070', store });
// #endregion
