/**
 * A page in front of a request loop: what its callbacks tell is what the page shows. With OPENAI_BASE_URL it serves until it is
 * stopped; without, a scripted model stands in, and one question is asked by itself.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { defineTool, type Model } from 'runchart';
import { openai } from 'runchart/openai';
import { createStateManager, processRequest } from 'runchart/request-loop';
import * as z from 'zod';

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city now.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `18 °C and dry in ${city}`,
});
/** Says that it looks, looks, and answers. */
const scripted: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    if (messages.at(-1)?.role === 'user') {
      yield { type: 'text-delta', text: 'I look it up. ' };
      yield { type: 'tool-call', callId: `call_${messages.length}`, name: 'weather', args: '{"city":"Lisbon"}' };
      yield { type: 'finish', reason: 'tool-calls', usage: { inputTokens: 50, outputTokens: 10 } };
    } else {
      yield { type: 'text-delta', text: 'Dry & mild.' };
      yield { type: 'finish', reason: 'stop', usage: { inputTokens: 80, outputTokens: 5 } };
    }
  },
};

// #region state
const model = process.env.OPENAI_BASE_URL ? (process.env.OPENAI_MODEL ?? 'gpt-5.2') : 'scripted';
const state = createStateManager({
  resolveModel: (name) => (name === 'scripted' ? scripted : openai(name)),
  tools: [weather],
  instructions: 'You tell the weather.',
  settings: { maxIterations: 10, globalRequestTimeoutSeconds: 120 },
});
// #endregion

// #region ask
/** One request, told to the page line by line as it goes; who closes the page aborts it. */
async function answer(question: string, page: ServerResponse): Promise<void> {
  const put = (kind: string, text: string): void => void page.write(`${JSON.stringify({ kind, text })}\n`);
  const closed = new AbortController();
  page.on('close', () => closed.abort());
  try {
    const run = await processRequest(question, model, state, {
      signal: closed.signal,
      streamingCallback: (delta) => put('text', delta),
      toolStartCallback: (label) => put('tools', `${label} …`),
      toolResultCallback: (name, status, args, result) =>
        put('tools', `${name} ${JSON.stringify(args)} ${status}: ${result}`),
      noticeCallback: (text) => put('notice', text),
    });
    const { runtime, usage } = state.session;
    const { inputTokens, outputTokens } = usage.sessionTotalUsage;
    const spent = `${runtime.iterationCount} model calls, ${inputTokens + outputTokens} tokens so far`;
    put('end', run.result ? spent : `no answer: ${spent}`);
  } catch (error) {
    put('end', String(error));
  }
  page.end();
}
// #endregion

const PAGE = `<!doctype html><meta charset="utf-8"><title>Weather</title>
<style>body { font: 1rem system-ui; max-width: 40rem; margin: 2rem auto } .tools, .notice, .end { color: gray }</style>
<form><input name="question" value="Is it dry in Lisbon?" size="40"><button>Ask</button></form><main></main>
<script>
  document.forms[0].onsubmit = async (event) => {
    event.preventDefault();
    const question = event.target.question.value;
    const headers = { 'content-type': 'application/json' };
    const { body } = await fetch('/ask', { method: 'POST', headers, body: JSON.stringify({ question }) });
    let rest = '';
    let last;
    for await (const piece of body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split('\\n');
      rest = lines.pop();
      for (const { kind, text } of lines.map((line) => JSON.parse(line))) {
        if (kind !== 'text' || last?.className !== 'text') {
          last = document.querySelector('main').appendChild(document.createElement('p'));
          last.className = kind;
        }
        last.textContent += text;
      }
    }
  };
</script>`;

const server = createServer(async (request, response) => {
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(PAGE);
    return;
  }
  // A form of another site cannot send this type unasked.
  if (request.headers['content-type'] !== 'application/json') return void response.writeHead(415).end();
  let body = '';
  for await (const piece of request) body += piece;
  response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' });
  await answer(String((JSON.parse(body) as { question: unknown }).question), response);
});
await new Promise<void>((resolve) => server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', resolve));
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

if (model === 'scripted') {
  const headers = { 'content-type': 'application/json' };
  const asked = await fetch(`${url}/ask`, { method: 'POST', headers, body: '{"question":"Is it dry in Lisbon?"}' });
  process.stdout.write(await asked.text());
  server.close();
} else {
  console.log(url);
}
