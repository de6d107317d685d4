/** The script of the browser test: one request with one tool call, whose outcome it writes into the page. */
import { createAgent, defineTool } from '../../src/index.ts';

/** A Standard Schema by hand: the core needs no schema library. */
const parameters = {
  '~standard': {
    version: 1,
    vendor: 'page',
    validate: (value) => (typeof value?.text === 'string' ? { value } : { issues: [{ message: 'text is missing' }] }),
  },
};
const echo = defineTool({
  name: 'echo',
  description: 'Returns its text.',
  parameters,
  execute: ({ text }) => `echo: ${text}`,
});
const model = {
  id: 'page',
  async *stream({ messages }) {
    const last = messages.at(-1);
    if (last.role === 'user') {
      yield { type: 'tool-call', callId: 'c1', name: 'echo', args: '{"text":"from a page"}' };
      yield { type: 'finish', reason: 'tool-calls' };
      return;
    }
    yield { type: 'text-delta', text: last.content[0].text };
    yield { type: 'finish', reason: 'stop' };
  },
};
const agent = createAgent({ model, tools: [echo] });
const conversation = await agent.open('page');
const result = await conversation.send('Go.').result;
const types = conversation.log().map(({ type }) => type);
const wanted = ['run-started', 'user-message', 'agent-output', 'model-reply', 'tool-result', 'run-stop'];
const pre = document.createElement('pre');
pre.id = 'result';
pre.textContent = `${result.termination} ${result.text}|${wanted.filter((type) => types.includes(type))}`;
document.body.append(pre);
