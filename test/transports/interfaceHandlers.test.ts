/** Pages of AG-UI and of the AI SDK, by the protocols' own clients, talking to the handlers. */
import { HttpAgent } from '@ag-ui/client';
import { DefaultChatTransport, getToolName, isToolUIPart, readUIMessageStream, type UIMessage } from 'ai';
import { describe, expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { streamed } from '../../src/transports/chat/chatStream.ts';
import { agUiHandler, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, deaf, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const authorize = (): boolean => true;
type Handler = (request: Request) => Promise<Response>;

function agentWith(replies: readonly Reply[], plugins = [asks().plugin]) {
  const model = scripted(replies);
  const ask = echoTool('ask');
  const agent = createAgent({ model, tools: [echoTool().tool, ask.tool], plugins });
  return { agent, model, ask };
}
const post = (handler: Handler, body: unknown, headers = {}): Promise<Response> =>
  handler(
    new Request('http://here/', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }),
  );

/** A page with the client of AG-UI. */
function page(handler: Handler) {
  const fetch = async (url: unknown, init?: unknown) => handler(new Request(url as string, init as RequestInit));
  return new HttpAgent({ url: 'http://here/', threadId: 'c', fetch: fetch as never });
}

/** A chat of the AI SDK with its messages. */
function chat(handler: Handler) {
  const fetch = (async (url: string, init: RequestInit) => handler(new Request(url, init))) as typeof globalThis.fetch;
  const transport = new DefaultChatTransport<UIMessage>({ api: 'http://here/', fetch });
  const messages: UIMessage[] = [];
  return {
    messages,
    async send(text?: string) {
      if (text !== undefined)
        messages.push({ id: `u${messages.length}`, role: 'user', parts: [{ type: 'text', text }] });
      const options = { chatId: 'c', messageId: undefined, abortSignal: undefined, trigger: 'submit-message' as const };
      const stream = await transport.sendMessages({ ...options, messages });
      const last = messages.at(-1);
      const going = last?.role === 'assistant' ? messages.pop() : undefined;
      let message: UIMessage | undefined;
      for await (const next of readUIMessageStream({ stream, ...(going && { message: going }) })) message = next;
      if (message) messages.push(message);
      return message?.parts.map((part) =>
        part.type === 'text' ? part.text : isToolUIPart(part) ? `${getToolName(part)} ${part.state}` : part.type,
      );
    },
  };
}

describe('agUiHandler', () => {
  it('it streams a run to the protocol’s client, which then has the same messages', async () => {
    const { agent, model } = agentWith([[t('I look.'), call('c1', 'echo', { m: 'a' })], 'Done.', 'Again.']);
    const client = page(agUiHandler(agent, { authorize }));
    client.addMessage({ id: 'u1', role: 'user', content: 'hi' });
    await client.runAgent();
    expect(client.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'hi'],
      ['assistant', 'I look.'],
      ['tool', '{"m":"a"}'],
      ['assistant', 'Done.'],
    ]);
    expect(client.messages[1]).toMatchObject({
      toolCalls: [{ id: 'c1', function: { name: 'echo', arguments: '{"m":"a"}' } }],
    });
    client.addMessage({ id: 'u2', role: 'user', content: 'and?' });
    await client.runAgent();
    expect(lines(model.calls.at(-1)?.messages ?? []).at(-1)).toBe('user and?');
    await agent.close();
  });

  it.each([
    ['resolved', { approved: true }, ['c1']],
    ['resolved', true, ['c1']],
    ['resolved', { action: 'edit', args: { m: 'b' } }, ['c1']],
    ['resolved', { approved: false, reason: 'no' }, []],
    ['cancelled', undefined, []],
  ])('an interrupt that is %s with %j continues in the same conversation', async (status, payload, ran) => {
    const { agent, ask } = agentWith([[call('c1', 'ask', { m: 'a' })], 'Done.']);
    const handler = agUiHandler(agent, { authorize: () => 'ada' });
    const input = {
      threadId: 'c',
      runId: 'r1',
      messages: [{ id: 'u1', role: 'user', content: 'hi' }],
      tools: [],
      context: [],
    };
    const first = await (await post(handler, input)).text();
    expect(first).toContain('"runId":"r1"');
    const resume = [{ interruptId: '1/c1', status, payload }];
    const second = await (await post(handler, { ...input, runId: 'r2', resume })).text();
    expect(second).toMatch(/RUN_STARTED[\s\S]*TOOL_CALL_RESULT[\s\S]*RUN_FINISHED/);
    expect(ask.ran).toEqual(ran);
    await agent.close();
  });

  it.each([
    ['no answer', { status: 'resolved' }],
    ['an unknown word', { status: 'resolved', payload: { approved: 'yes' } }],
    ['a yes with new arguments', { status: 'resolved', payload: { approved: true, args: { m: 'b' } } }],
    ['a yes with a field of the page', { status: 'resolved', payload: { approved: true, editedArgs: { m: 'b' } } }],
    ['an approval with new arguments', { status: 'resolved', payload: { action: 'approve', args: { m: 'b' } } }],
    ['an approval with another field', { status: 'resolved', payload: { action: 'approve', note: 'ok' } }],
  ])('%s approves nothing', async (_, answer) => {
    const { agent, ask } = agentWith([[call('c1', 'ask', { m: 'a' })]]);
    const handler = agUiHandler(agent, { authorize });
    const input = { threadId: 'c', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
    await (await post(handler, input)).text();
    const refused = await post(handler, { ...input, resume: [{ interruptId: '1/c1', ...answer }] });
    expect([refused.status, ask.ran]).toEqual([400, []]);
    await agent.close();
  });

  it('a request with nothing to continue starts and ends', async () => {
    const { agent } = agentWith(['Done.']);
    const handler = agUiHandler(agent, { authorize });
    const input = { threadId: 'c', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
    await (await post(handler, input)).text();
    const nothing = await (
      await post(handler, { ...input, resume: [{ interruptId: '1/c9', status: 'cancelled' }] })
    ).text();
    expect(nothing).toMatch(/^data: {"type":"RUN_STARTED"[^\n]*\n\ndata: {"type":"RUN_FINISHED"[^\n]*\n\n$/);
    await agent.close();
  });

  it('a decision of the page names the suspension that it answers, and has no decider', async () => {
    const { agent, ask } = agentWith([[call('c1', 'ask', { m: 'a' })], 'Done.']);
    const shared = sessions(agent);
    const handler = agUiHandler(agent, { authorize, sessions: shared });
    const input = { threadId: 'c', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
    await (await post(handler, input)).text();
    const payload = { action: 'approve', callId: 'c9', suspension: 4, by: 'root' };
    await (await post(handler, { ...input, resume: [{ interruptId: '1/c1', status: 'resolved', payload }] })).text();
    const conversation = await shared.acquire('c');
    const decisions = conversation.log().flatMap((entry) => (entry.type === 'decision' ? [entry.decision] : []));
    expect([ask.ran, decisions]).toEqual([['c1'], [{ action: 'approve', callId: 'c1', suspension: 1 }]]);
    await agent.close();
  });

  it('a disconnected page ends nothing', async () => {
    const { agent, model } = agentWith([deaf(t('I'))]);
    const handler = agUiHandler(agent, { authorize });
    const input = { threadId: 'c', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
    const reader = (await post(handler, input)).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(model.signals[0]?.aborted).toBe(false);
    const another = { ...input, messages: [{ id: 'u2', role: 'user', content: 'and?' }] };
    expect((await post(handler, another)).status).toBe(409);
    await agent.close();
  });
});

describe('uiMessageHandler', () => {
  it('it streams a run to a chat, and continues the same message after an approval', async () => {
    const { agent, ask } = agentWith([[t('May I?'), call('c1', 'ask', { m: 'a' })], 'Done.']);
    const on = chat(uiMessageHandler(agent, { authorize }));
    expect(await on.send('hi')).toEqual(expect.arrayContaining(['May I?', 'ask approval-requested']));
    const part = on.messages.at(-1)?.parts.find(isToolUIPart);
    Object.assign(part ?? {}, { state: 'approval-responded', approval: { id: '1/c1', approved: true } });
    expect(await on.send()).toEqual(expect.arrayContaining(['ask output-available', 'Done.']));
    expect([on.messages.length, ask.ran]).toEqual([2, ['c1']]);
    await agent.close();
  });

  it('it refuses an approval with new arguments, and accepts one with a reason', async () => {
    const { agent, ask } = agentWith([[call('c1', 'ask', { m: 'a' })], 'Done.']);
    const handler = uiMessageHandler(agent, { authorize });
    const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }];
    await (await post(handler, { id: 'c', messages })).text();
    const answered = (approval: object): Promise<Response> => {
      const part = { type: 'dynamic-tool', state: 'approval-responded', approval: { id: '1/c1', ...approval } };
      return post(handler, { id: 'c', messages: [...messages, { id: 'a1', role: 'assistant', parts: [part] }] });
    };
    const refused = await answered({ approved: true, args: { m: 'b' } });
    expect([refused.status, await refused.json(), ask.ran]).toMatchObject([400, { code: 'invalid_decision' }, []]);
    await (await answered({ approved: true, reason: 'fine', isAutomatic: false })).text();
    expect(ask.ran).toEqual(['c1']);
    await agent.close();
  });

  it('it ends with its mark and names its protocol', async () => {
    const { agent } = agentWith(['Done.']);
    const body = { id: 'c', messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }] };
    const response = await post(uiMessageHandler(agent, { authorize }), body);
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    expect(await response.text()).toMatch(/"type":"finish","finishReason":"stop"}\n\ndata: \[DONE]\n\n$/);
    await agent.close();
  });
});

describe('the conversation of a request', () => {
  const input = { threadId: 'c', runId: 'r1', messages: [{ id: 'u1', role: 'user', content: 'hi' }] };
  /** Sessions that record each acquire and release. */
  function watched(replies: readonly Reply[]) {
    const { agent } = agentWith(replies);
    const shared = sessions(agent);
    const seen: string[] = [];
    const handler = agUiHandler(agent, {
      authorize,
      sessions: {
        ...shared,
        async acquire(id, options) {
          const conversation = await shared.acquire(id, options);
          seen.push('acquire');
          return conversation;
        },
        release(conversation) {
          seen.push('release');
          shared.release(conversation);
        },
      },
    });
    return { agent, handler, seen };
  }

  it('it is released once, when its stream has ended, is not read any more, or was refused', async () => {
    const { agent, handler, seen } = watched([[call('c1', 'ask', { m: 'a' })], deaf(t('I'))]);
    await (await post(handler, input)).text();
    expect(seen.splice(0)).toEqual(['acquire', 'release']);
    expect((await post(handler, { ...input, resume: [{ interruptId: '1/c1', status: 'resolved' }] })).status).toBe(400);
    expect(seen.splice(0)).toEqual(['acquire', 'release']);
    const reader = (
      await post(handler, { ...input, resume: [{ interruptId: '1/c1', status: 'cancelled' }] })
    ).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(seen).toEqual(['acquire', 'release']);
    await agent.close();
  });

  it.each(['ends', 'breaks', 'is not read any more'])(
    'it leaves no timer, and ends once, when its stream %s',
    async (how) => {
      const clock = new VirtualClock();
      const ended: string[] = [];
      const { body } = streamed(
        (async function* () {
          yield { type: 'one' };
          if (how === 'breaks') throw new Error('broken');
        })(),
        { last: '', headers: {}, beatMs: 10, setTimer: clock.setTimer, over: () => void ended.push('over') },
      );
      const reader = body?.getReader();
      await reader?.read();
      if (how === 'is not read any more') await reader?.cancel();
      else if (how === 'breaks') await expect(reader?.read()).rejects.toThrow('broken');
      else expect(await reader?.read()).toMatchObject({ done: true });
      expect([ended, clock.waiting]).toEqual([['over'], 0]);
    },
  );
});

describe.each([
  {
    name: 'agUiHandler',
    make: agUiHandler,
    asked: { threadId: 'c', messages: [{ role: 'user', content: 'hi' }] },
    approval: { threadId: 'c', resume: [{ interruptId: '1/c1', status: 'resolved', payload: true }] },
    frames: ['RUN_STARTED', 'TOOL_CALL_RESULT', 'RUN_FINISHED'],
  },
  {
    name: 'uiMessageHandler',
    make: uiMessageHandler,
    asked: { id: 'c', messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] },
    approval: {
      id: 'c',
      messages: [
        {
          role: 'assistant',
          parts: [{ toolCallId: 'c1', state: 'approval-responded', approval: { id: '1/c1', approved: true } }],
        },
      ],
    },
    frames: ['start', 'tool-output-error', 'abort'],
  },
])('$name, with an approval', ({ make, asked, approval, frames }) => {
  const typesIn = (text: string): string[] =>
    [...text.matchAll(/^data: {"type":"([^"]+)"/gm)].map(([, type]) => type ?? '');

  // Ids of calls are any text.
  it.each(['c1', 'a/b', '1/c1', 'c/1/'])(
    'after the cycle of call %s was cancelled it runs no call and calls no model: the answer is the end of the cycle',
    async (id) => {
      const { agent, model, ask } = agentWith([[call(id, 'ask', { m: 'a' })], 'Done.']);
      const shared = sessions(agent);
      const handler = make(agent, { authorize, sessions: shared });
      await (await post(handler, asked)).text();
      const conversation = await shared.acquire('c');
      await conversation.cancel();
      const before = conversation.log().length;
      const ofCall = JSON.parse(JSON.stringify(approval).replaceAll('c1', id));
      const bodyText = await (await post(handler, ofCall)).text();
      expect([typesIn(bodyText), bodyText]).toEqual([frames, expect.stringContaining('cancelled')]);
      expect([ask.ran, model.calls.length, conversation.log().length]).toEqual([[], 1, before]);
      await agent.close();
    },
  );

  it('a durable approval continues the waiting cycle, with its run', async () => {
    const { agent, ask } = agentWith([[call('c1', 'ask', { m: 'a' })], 'Done.']);
    const shared = sessions(agent);
    const handler = make(agent, { authorize, sessions: shared });
    await (await post(handler, asked)).text();
    await (await shared.acquire('c')).decide({ callId: 'c1', action: 'approve' });
    const answers = await Promise.all([post(handler, approval), post(handler, approval)]);
    for (const answer of answers) expect(await answer.text()).toContain('Done.');
    expect(ask.ran).toEqual(['c1']);
    await agent.close();
  });
});

describe.each([
  ['agUiHandler', agUiHandler, { threadId: 'c', messages: [{ role: 'user', content: 'hi' }] }],
  [
    'uiMessageHandler',
    uiMessageHandler,
    { id: 'c', messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] },
  ],
] as const)('%s refuses', (name, make, body) => {
  const handler = (options = {}) => make(agentWith([]).agent, { authorize, ...options });

  it.each<[number, string, unknown]>([
    [400, 'malformed', []],
    [400, 'malformed', {}],
    [400, 'malformed', { ...body, id: '', threadId: '' }],
    [
      404,
      'not_found',
      {
        ...body,
        threadId: 'c9',
        id: 'c9',
        messages: [{ role: 'assistant', parts: [] }],
        resume: [{ interruptId: 'x' }],
      },
    ],
  ])('%i %s: %j', async (status, code, requestBody) => {
    const answer = await post(handler(), requestBody);
    expect([answer.status, await answer.json()]).toMatchObject([status, { code }]);
  });

  it.each(['.', '..', '\ud800'])('the id %j, which no path of a conversation can contain', async (id) => {
    const { agent } = agentWith(['hello']);
    const answer = await post(make(agent, { authorize }), { ...body, threadId: id, id });
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'malformed' }]);
    expect(await agent.list()).toEqual([]);
  });

  if (name === 'uiMessageHandler')
    it('an unknown trigger of the page', async () => {
      const answer = await post(handler(), { ...body, trigger: 'submit' });
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'malformed' }]);
    });

  it('an unauthorized client, another method, another type, an overlong body', async () => {
    expect((await post(handler({ authorize: () => false }), body)).status).toBe(401);
    expect((await handler()(new Request('http://here/'))).status).toBe(405);
    expect((await post(handler(), body, { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post(handler({ bodyBytesMax: 10 }), body)).status).toBe(413);
    expect(() => make(agentWith([]).agent, {} as never)).toThrow(`${name} needs authorize`);
  });
});

it('a wrapper of an agent with its four methods alone answers pages of both protocols', async () => {
  const wrapped = (text: string) => {
    const { agent } = agentWith([text]);
    const [open, list, run, close] = [agent.open, agent.list, agent.run, agent.close].map((each) => each.bind(agent));
    return { open, list, run, close } as typeof agent;
  };
  const client = page(agUiHandler(wrapped('one'), { authorize }));
  client.messages = [{ id: 'm1', role: 'user', content: 'hi' }];
  const { newMessages } = await client.runAgent();
  expect(newMessages.map(({ content }) => content)).toEqual(['one']);
  expect(await chat(uiMessageHandler(wrapped('two'), { authorize })).send('hi')).toContain('two');
});
