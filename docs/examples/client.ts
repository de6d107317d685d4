/** A server of an agent, and clients that use its conversations. */
// #region setup
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAgent, defineTool } from 'runchart';
import { connect } from 'runchart/client';
import { scriptedModel } from 'runchart/testing';
import { createHandlers, nodeHandler } from 'runchart/transports';
import * as z from 'zod';

const transfer = defineTool({
  name: 'transfer',
  description: 'Sends money.',
  parameters: z.object({ euros: z.number() }),
  needsApproval: true,
  execute: ({ euros }) => `sent ${euros} euros`,
});
const model = scriptedModel([
  'Hello.',
  {
    parts: [
      { type: 'tool-call', callId: 'call_1', name: 'transfer', args: '{"euros":900}' },
      { type: 'finish', reason: 'tool-calls' },
    ],
  },
  'The rent is paid.',
]);
// #endregion

// #region serve
const agent = createAgent({ model, tools: [transfer] });
const isUser = (request: Request): boolean => request.headers.get('authorization') === 'Bearer secret';
const server = createServer(nodeHandler(createHandlers(agent, { authorize: isUser })));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
// #endregion

// #region connect
const client = connect({ baseURL, headers: { authorization: 'Bearer secret' } });
const conversation = await client.open('rent');
console.log(await conversation.send('Hello').text);
// #endregion

// #region approve
const result = await conversation.send('Pay the rent').result;
console.log(result.termination, conversation.pending[0]?.args);

// Another page, perhaps on another machine, opens the same conversation.
const other = await client.open('rent');
for (const { callId, suspension } of other.pending) {
  console.log(await other.decide({ callId, suspension, action: 'approve' }));
}
console.log(await other.resume().text);
// #endregion

// #region stream
const show = (..._: unknown[]): void => {}; // replace it by what your page does
conversation.view$.subscribe((view) => show(view.cycles.length));
conversation.live$.subscribe((signal) => {
  if (signal.type === 'text-delta') show(signal.text);
});
conversation.connection$.subscribe(({ state, error }) => show(state, error?.code));
// #endregion

// #region refused
const refused = await conversation.send('').result;
console.log(refused.termination, refused.error?.code);
// #endregion

// #region close
await client.close();
await agent.close();
server.closeAllConnections();
server.close();
// #endregion
