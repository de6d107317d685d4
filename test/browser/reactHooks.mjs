/** The hooks of `runchart/react` in a real browser, and a server that cuts the page's connection. */
import { strict as assert } from 'node:assert';
import { createServer } from 'node:http';
import { bundled, written } from './chromium.mjs';
import { payingModel, payment } from './payingAgent.mjs';

const PAGE = `<!doctype html><meta charset="utf-8"><body><script type="module" src="/script.js"></script>`;

/** `library`: the sources that the server runs. */
export async function hooksOfReact({ createAgent, defineTool, createHandlers, nodeHandler }) {
  const agent = createAgent({ model: payingModel(), tools: [defineTool(payment)] });
  const handle = nodeHandler(createHandlers(agent, { authorize: () => true }));
  const script = await bundled('reactPage.mjs');
  const server = createServer(async (request, response) => {
    if (request.url === '/') return response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    if (request.url === '/script.js')
      return response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' }).end(script);
    if (request.url !== '/cut') return handle(request, response);
    response.end();
    setTimeout(() => server.closeAllConnections(), 50);
    await anotherClient();
  });
  const address = () => `http://127.0.0.1:${server.address().port}`;
  /** Sends another message and approves its call, over HTTP. */
  async function anotherClient() {
    const post = (act, body = {}) =>
      fetch(`${address()}/conversations/a/${act}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const show = async () => (await fetch(`${address()}/conversations/a`)).json();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await post('messages', { content: 'again' });
    while ((await show()).pending.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    const [{ callId, suspension }] = (await show()).pending;
    await post('decisions', { callId, suspension, action: 'approve' });
    await post('resume');
  }
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const found = JSON.parse(await written('', { url: `${address()}/` }));
    assert.deepEqual(found, {
      texts: ['thinking paid', 'thinking paid', 'thinking paid thinking paid'],
      twin: 'thinking paid',
      own: { opened: 1, closed: 1 },
      remote: { opened: 1, closed: 1 },
      errors: [],
      isWhole: true,
    });
    console.log(
      'React in StrictMode: conversations of the page and of a server, opened once, closed once, reconnected',
    );
  } finally {
    server.closeAllConnections();
    server.close();
    await agent.close();
  }
}
