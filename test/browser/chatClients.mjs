/** `useChat` of two versions of the AI SDK in a real browser, against a server of the library on the loopback. */
import { strict as assert } from 'node:assert';
import { createServer } from 'node:http';
import { bundled, written } from './chromium.mjs';
import { payment } from './payingAgent.mjs';

const PAGE = `<!doctype html><meta charset="utf-8"><body><script type="module" src="/script.js"></script>`;
/** Each version of `useChat` with the packages that its page imports. */
const PACKAGES = { 'ai 6': {}, 'ai 7': { ai: 'ai-v7', '@ai-sdk/react': 'ai-sdk-react-v4' } };
const long = Array.from({ length: 40 }, (_, index) => `word ${index}`).join(' ');

/** Answers the last message, a word at a time. */
const model = {
  id: 'scripted',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [{ text }] = last.content;
    if (text === 'pay') {
      yield { type: 'text-delta', text: 'I pay.' };
      yield { type: 'tool-call', callId: `c${messages.length}`, name: 'pay', args: '{"to":"ada"}' };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    const reply = last.role === 'tool' ? 'Paid.' : text === 'hello' ? `Hello. ${long}` : `${text}: ${long}`;
    // The page is loaded again during this reply, which takes a slow machine some seconds.
    const pauseMs = text === 'long' ? 50 : 10;
    for (const word of reply.split(/(?<= )/)) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      yield { type: 'text-delta', text: word };
    }
    yield { type: 'finish', reason: 'stop' };
  },
};

/** `library`: the sources that the server runs. */
export async function pagesOfUseChat(library, versions) {
  for (const version of versions) {
    await pageOfUseChat(library, PACKAGES[version]);
    console.log(
      `useChat of ${version}: streamed, approved, reloaded in mid-reply and while a call waits, stopped, regenerated, edited`,
    );
  }
}

async function pageOfUseChat(library, packages) {
  const handlerOf = (agent) => library.uiMessageHandler(agent, { authorize: () => true, basePath: '/api/chat' });
  const found = await reportOf(library, { handlerOf, script: await bundled('chatPage.mjs', packages) });
  const { half, stopped, ...whole } = found;
  // A page that receives its text at the end only has all of it here.
  assert.match(half, /^long: word 0 .*word 5/);
  assert.doesNotMatch(half, /word 39/);
  const paid = 'assistant: I pay.tool-pay output-available "paid"Paid.';
  const first = ['user: hello', `assistant: Hello. ${long}`, 'user: pay', paid];
  const resumed = [...first, 'user: long', `assistant: long: ${long}`];
  assert.deepEqual(stopped.slice(0, -1), [...resumed, 'user: stop']);
  assert.match(stopped.at(-1), /^assistant: stop: word 0 word 1 word 2 word 3/);
  assert.doesNotMatch(stopped.at(-1), /word 39/);
  const edited = [...resumed, 'user: hello', `assistant: Hello. ${long}`];
  assert.deepEqual(whole, {
    first,
    resumed,
    regenerated: [...resumed, 'user: stop', `assistant: stop: ${long}`],
    edited,
    errors: '',
    history: edited,
    answered: ['user: pay', paid],
  });
}

export async function pageOfAgUi(library) {
  const handlerOf = (agent) => library.agUiHandler(agent, { authorize: () => true });
  const found = await reportOf(library, { handlerOf, script: await bundled('agUiPage.mjs') });
  assert.deepEqual(found, {
    grows: true,
    messages: [
      ['user', 'hello'],
      ['assistant', `Hello. ${long}`],
      ['user', 'pay'],
      ['assistant', 'I pay.'],
      ['tool', 'paid'],
      ['assistant', 'Paid.'],
    ],
    interrupts: 1,
  });
  console.log('HttpAgent of AG-UI: streamed, interrupted, approved');
}

/** The report of a page with this script. */
async function reportOf({ createAgent, defineTool, nodeHandler }, { handlerOf, script }) {
  const agent = createAgent({ model, tools: [defineTool(payment)], policies: { partialReply: 'keep' } });
  const handle = nodeHandler(handlerOf(agent));
  const server = createServer((request, response) => {
    if (request.url === '/') return response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    if (request.url === '/script.js')
      return response.writeHead(200, { 'content-type': 'text/javascript; charset=utf-8' }).end(script);
    return handle(request, response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const found = JSON.parse(await written('', { url: `http://127.0.0.1:${server.address().port}/` }));
    assert.equal(found.error, undefined, `${found.error}: ${JSON.stringify(found.saved)}`);
    return found;
  } finally {
    server.closeAllConnections();
    server.close();
    await agent.close();
  }
}
