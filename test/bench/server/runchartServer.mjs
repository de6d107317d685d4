/** runchart as a server: `createHandlers` through `nodeHandler`, or through the adapter of Hono with the argument `web`. */
import { createServer } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import * as z from 'zod';
import { createAgent, defineTool } from '../../../dist/src/index.js';
import { jsonlStore } from '../../../dist/src/node.js';
import { createHandlers, nodeHandler, sessions } from '../../../dist/src/transports/index.js';
import { nextProbe, serve, withProbe } from './remote.mjs';
import { finishedReplies, lookup, scriptedReply, TOOL } from './scriptedReply.mjs';

const [form, directory, idleMs] = process.argv.slice(2);
const tool = defineTool({
  name: TOOL,
  description: 'Looks up a key.',
  parameters: z.object({ key: z.string() }),
  execute: lookup,
});
const model = {
  id: 'bench',
  stream({ messages }, context) {
    const last = messages.at(-1);
    const prompt = messages.findLast(({ role }) => role === 'user').content[0].text;
    return scriptedReply({ prompt, isAfterTools: last.role === 'tool', signal: context.signal });
  },
};
const agent = createAgent({
  model,
  tools: [tool],
  store: jsonlStore(directory),
  policies: { limits: { turns: 1000, identicalCalls: 1000, toolCallsPerTurn: 10_000 } },
});
const shared = sessions(agent, idleMs === undefined ? {} : { idleMs: Number(idleMs) });
const options = { authorize: () => true, sessions: shared, beatMs: 3_000 };
const handler = createHandlers(agent, options);
const server = form === 'web' ? createAdaptorServer({ fetch: handler }) : createServer(withProbe(nodeHandler(handler)));
// The clients keep their connections between rounds.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', 4096, () =>
  serve({
    port: () => server.address().port,
    finishedReplies,
    /** Milliseconds until the stop of a cancelled conversation is durable, without HTTP. */
    async cancel({ id }) {
      const conversation = await shared.acquire(id, { existing: true });
      try {
        const probe = nextProbe();
        const since = performance.now();
        await conversation.cancel();
        return { cancel: performance.now() - since, probe: await probe };
      } finally {
        shared.release(conversation);
      }
    },
  }),
);
