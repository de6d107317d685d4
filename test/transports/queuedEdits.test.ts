/**
 * A page's message that is sent again while it waits in the queue. Invariant: the same content as that of its last
 * version is a repetition, which queues nothing; other content is another version.
 */
import { expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { agUiHandler, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, scripted } from '../support/scriptedReplies.ts';

const HANDLERS = {
  'AG-UI': {
    make: agUiHandler,
    body: (id: string, content: string) => ({
      threadId: 'c',
      runId: 'r',
      messages: [{ id, role: 'user', content }],
      tools: [],
      context: [],
    }),
  },
  'UI messages': {
    make: uiMessageHandler,
    body: (id: string, text: string) => ({
      id: 'c',
      messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
    }),
  },
} as const;
const LENGTH = 3;
const ORDERS = Array.from({ length: 2 ** LENGTH }, (_, number) =>
  Array.from({ length: LENGTH }, (__, at) => ((number >> at) & 1 ? 'x' : 'y')),
);

it.each(Object.entries(HANDLERS))('%s: each version of a queued message is queued once', async (_, { make, body }) => {
  for (const contents of ORDERS) {
    const agent = createAgent({
      model: scripted([[call('c1', 'ask', { m: '' })]]),
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
    });
    const shared = sessions(agent);
    const handler = make(agent, { authorize: () => true, sessions: shared, whileSuspended: 'followUp' });
    const conversation = await shared.acquire('c');
    await conversation.send('go').result;
    for (const content of contents) {
      const response = await handler(
        new Request('http://h/', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body('m', content)),
        }),
      );
      await response.text();
    }
    const queued = conversation.queue.map(({ content }) => content.map((part) => 'text' in part && part.text).join(''));
    expect([contents, queued]).toEqual([contents, contents.filter((content, at) => content !== contents[at - 1])]);
    shared.release(conversation);
    await agent.close();
  }
});
