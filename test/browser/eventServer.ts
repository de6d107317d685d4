/** A page and the conversation it listens to, on one server, which cuts every connection again and again. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { createAgent, type Model } from '../../src/index.ts';
import { createHandlers } from '../../src/transports/index.ts';

/** Collects the entries of the events until the run's stop, and reports them. */
const PAGE = `<!doctype html><meta charset="utf-8"><body><script type="module">
const seqs = [];
let opens = 0;
const source = new EventSource('/conversations/a/events');
source.onopen = () => { opens += 1; };
source.addEventListener('entry', ({ data, lastEventId }) => {
  const entry = JSON.parse(data);
  seqs.push(entry.seq === Number(lastEventId) ? entry.seq : lastEventId);
  if (entry.type !== 'run-stop') return;
  source.close();
  const pre = document.createElement('pre');
  pre.id = 'result';
  pre.textContent = JSON.stringify({ seqs, opens });
  document.body.append(pre);
});
</script>`;

const ROUNDS = 14;
/** The cuts are further apart than a page needs to reconnect. If it needs longer, the run waits for it there. */
const CUT_AT = [4, 34, 60];

function slowModel(goesOn: () => Promise<void>): Model {
  let round = 0;
  return {
    id: 'slow',
    async *stream() {
      round += 1;
      await new Promise((resolve) => setTimeout(resolve, 250));
      await goesOn();
      if (round < ROUNDS) yield { type: 'tool-call', callId: `c${round}`, name: 'nope', args: `{"round":${round}}` };
      else yield { type: 'text-delta', text: 'done' };
      yield { type: 'finish', reason: round < ROUNDS ? 'tool-calls' : 'stop' };
    },
  };
}

/** Returns the address, and a function that closes the server. The run begins with the page's first connection. */
export async function eventServer() {
  let listens = false;
  let cameBack: (() => void) | undefined;
  let back = Promise.resolve();
  const agent = createAgent({ model: slowModel(() => back) });
  const conversation = await agent.open('a');
  const shared = { acquire: async () => conversation, release: () => undefined, close: () => conversation.close() };
  const handle = createHandlers(agent, { authorize: () => true, sessions: shared });
  let begin: (() => void) | undefined = () => void conversation.send('go');
  const server = createAdaptorServer({
    overrideGlobalObjects: false,
    async fetch(request: Request) {
      if (new URL(request.url).pathname === '/')
        return new Response(PAGE, { headers: { 'content-type': 'text/html' } });
      const response = await handle(request);
      listens = true;
      cameBack?.();
      begin?.();
      begin = undefined;
      return response;
    },
  }) as Server;
  /** A page without a connection cannot be cut off. */
  async function cut(): Promise<void> {
    if (!listens) {
      back = new Promise((resolve) => {
        cameBack = resolve;
      });
      await back;
    }
    listens = false;
    await new Promise((resolve) => setTimeout(resolve, 20));
    server.closeAllConnections();
  }
  conversation.log$().subscribe(({ seq }) => {
    if (CUT_AT.includes(seq)) void cut();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    cuts: CUT_AT.length,
    async close() {
      server.closeAllConnections();
      server.close();
      await agent.close();
    },
  };
}
