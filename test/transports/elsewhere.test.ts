/**
 * Requests about a conversation that another process holds, through every handler. Two agents share a store in memory, as if each were
 * a process: one holds the conversation, and the other one receives the requests. Its model fails, so that only the holder answers.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { connect } from '../../src/client/index.ts';
import {
  type Agent,
  type AgentOptions,
  type Conversation,
  createAgent,
  defineTool,
  type LogEntry,
  type Model,
  subAgents,
} from '../../src/index.ts';
import {
  agUiHandler,
  createHandlers,
  type HandlerOptions,
  inProcessTransport,
  type Outgoing,
  type RouteOptions,
  route,
  type SessionOptions,
  sessions,
  uiMessageHandler,
} from '../../src/transports/index.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, during, finish, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { sharedMemoryStore } from '../support/sharedMemoryStore.ts';
import { byTask, spawn, submit } from '../support/subAgentBench.ts';
import { readUntil } from './agentServer.ts';
import { agUiPage, ChatPage, served } from './chatPages.ts';

const authorize = (): boolean => true;
const wrongModel: Model = {
  id: 'wrong',
  stream() {
    throw new Error('the wrong process asks its model');
  },
};

/** `holder` has the conversation `c` open. */
async function processes(replies: readonly Reply[], options: Partial<AgentOptions> = {}) {
  const store = sharedMemoryStore();
  const holder = createAgent({ model: scripted(replies), store, ...options });
  const other = createAgent({ store, ...options, model: wrongModel });
  onTestFinished(async () => {
    await other.close();
    await holder.close();
  });
  return { store, holder, other, held: await holder.open('c') };
}

function asker(agent: Agent, options: Partial<HandlerOptions> = {}) {
  const handler = createHandlers(agent, { authorize, ...options });
  return async (method: string, path: string, body?: object) => {
    const json = { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await handler(new Request(`http://here/conversations${path}`, { method, ...(body && json) }));
    const text = await response.text();
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
  };
}

const typesOf = (entries: readonly LogEntry[], type: LogEntry['type']): LogEntry[] =>
  entries.filter((entry) => entry.type === type);

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => 'paid',
});

describe('a page of AG-UI whose request reaches another process', () => {
  it('receives the whole run as it streams, and its answer to an interrupt decides the call', async () => {
    const { other, held } = await processes([[t('Wait'), t(' please.'), call('c1', 'pay')], 'Paid.'], { tools: [pay] });
    const page = agUiPage((await served(agUiHandler(other, { authorize }))).url);
    page.addMessage({ id: 'u1', role: 'user', content: 'Pay the rent.' });
    await page.runAgent();
    expect(page.pendingInterrupts.map(({ id }) => id)).toEqual(['1/c1']);
    await page.runAgent({ resume: [{ interruptId: '1/c1', status: 'resolved', payload: true }] });
    expect(page.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(page.messages.at(-1)).toMatchObject({ content: 'Paid.' });
    expect(held.log().flatMap((entry) => (entry.type === 'user-message' ? [entry.messageId] : []))).toEqual(['u1']);
  });

  it('offers its tools and merges its state at the holder, and receives what it lacks', async () => {
    const { store, held, holder, other } = await processes([]);
    await held.close();
    const [ask, answer] = [[call('p1', 'color', { name: 'red' }), finish('tool-calls')], 'It is red.'] as const;
    const agent = createAgent({ model: scripted(['Hello.', ask, answer]), store });
    onTestFinished(() => agent.close());
    // Every process has the same handlers, so its conversations take tools of pages.
    agUiHandler(agent, { authorize });
    const conversation = await agent.open('c');
    await conversation.send('Hi').result;
    const page = agUiPage((await served(agUiHandler(other, { authorize }))).url);
    page.state = { shade: 'dark' };
    page.addMessage({ id: 'u2', role: 'user', content: 'Which color?' });
    const tools = [{ name: 'color', description: 'Sets the color.', parameters: { type: 'object' } }];
    await page.runAgent({ tools });
    expect(conversation.state).toEqual({ shade: 'dark' });
    expect(JSON.stringify(page.messages)).toContain('Hello.');
    page.addMessage({ id: 'r1', role: 'tool', toolCallId: 'p1', content: 'done' });
    await page.runAgent({ tools });
    expect(page.messages.at(-1)).toMatchObject({ content: 'It is red.' });
    await holder.close();
  });
});

describe('a chat of the AI SDK whose requests reach another process', () => {
  it('sends, approves, edits, regenerates, and has its history', async () => {
    const replies = ['One.', [call('c1', 'pay')], 'Paid.', 'Edited.', 'Again.'];
    const { other, held } = await processes(replies, { tools: [pay] });
    const { url } = await served(uiMessageHandler(other, { authorize }));
    const page = new ChatPage(url);
    await page.sendMessage({ text: 'Hi' });
    expect(page.last).toEqual(['One.']);
    await page.sendMessage({ text: 'Pay the rent.' });
    await page.addToolApprovalResponse({ id: page.asked[0]?.approvalId ?? '', approved: true });
    await expect.poll(() => [page.status, page.last.at(-1)]).toEqual(['ready', 'Paid.']);
    const messageId = page.messages.find(({ parts }) => JSON.stringify(parts).includes('Pay'))?.id ?? '';
    await page.sendMessage({ text: 'Pay nothing.', messageId });
    expect(page.last).toEqual(['Edited.']);
    await page.regenerate();
    expect(page.last).toEqual(['Again.']);
    expect(typesOf(held.log(), 'rewound')).toHaveLength(2);
    const reloaded = await ChatPage.reloaded(url);
    expect(reloaded.last).toEqual(['Again.']);
    expect(reloaded.messages).toHaveLength(4);
  });

  it('shows an image of its history', async () => {
    const { other, held } = await processes(['A dot.']);
    const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    await held.send([{ type: 'image', mediaType: 'image/png', data }]).result;
    expect(JSON.stringify(held.log())).toContain('blob:');
    const handler = uiMessageHandler(other, { authorize });
    const history = await (await handler(new Request('http://here/c'))).text();
    expect(history).toContain(data);
  });

  it('continues a running reply from its beginning, and stops it', async () => {
    let begun = (): void => {};
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const silent: Model = {
      id: 'silent',
      async *stream(_, { signal }) {
        yield t('Once upon');
        begun();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    };
    const { store, other } = await processes([]);
    const agent = createAgent({ model: silent, store });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('d');
    const run = conversation.send('Tell a story.');
    await isBegun;
    const handler = uiMessageHandler(other, { authorize });
    const stream = await handler(new Request('http://here/d/stream'));
    const reader = stream.body?.getReader();
    await readUntil(reader, (text) => text.includes('Once upon'));
    const stopped = await handler(new Request('http://here/d/stop', { method: 'POST' }));
    expect(await stopped.json()).toEqual({ status: 'idle' });
    await readUntil(reader, (text) => text.includes('[DONE]'));
    expect((await reader?.read())?.done).toBe(true);
    expect((await run.result).termination).toBe('Cancelled');
    expect((await handler(new Request('http://here/d/stream'))).status).toBe(204);
  });
});

describe('a line transport in another process', () => {
  function routed(agent: Agent, options: RouteOptions = {}) {
    const { server, client } = inProcessTransport();
    const outgoing: Outgoing[] = [];
    client.messages$.subscribe((message) => outgoing.push(message));
    void route(agent, server, { multiTurn: true, ...options });
    onTestFinished(() => client.close());
    const of = <T extends Outgoing['type']>(type: T) =>
      outgoing.filter((each): each is Extract<Outgoing, { type: T }> => each.type === type);
    return { client, of };
  }

  it('passes messages, decisions, resumptions and cancels on, and sends each entry once', async () => {
    const { other, held } = await processes(['One.', [call('c1', 'pay')], 'Paid.', [call('c2', 'pay')]], {
      tools: [pay],
    });
    const { client, of } = routed(other);
    client.send({ type: 'user-message', conversation: 'c', content: 'Hi', requestId: 'r1' });
    await expect.poll(() => of('turn-result').length).toBe(1);
    expect(of('answer')[0]?.value).toMatchObject({ conversation: 'c', runId: of('turn-result')[0]?.result.runId });
    client.send({ type: 'user-message', conversation: 'c', content: 'Pay.' });
    await expect.poll(() => of('turn-result').at(-1)?.result.termination).toBe('Suspended');
    client.send({
      type: 'decision',
      conversation: 'c',
      decision: { callId: 'c1', action: 'approve' },
      requestId: 'r2',
    });
    client.send({ type: 'resume', conversation: 'c' });
    await expect.poll(() => of('turn-result').at(-1)?.result.text).toBe('Paid.');
    expect(of('answer').at(-1)?.value).toEqual({ receipt: 'applied' });
    client.send({ type: 'user-message', conversation: 'c', content: 'Pay.' });
    await expect.poll(() => held.status).toBe('waiting');
    client.send({ type: 'cancel', conversation: 'c', requestId: 'r3' });
    await expect.poll(() => of('answer').at(-1)).toMatchObject({ requestId: 'r3', value: { status: 'idle' } });
    await expect.poll(() => of('entry').length).toBe(held.log().length);
    expect(of('entry').map(({ entry }) => entry)).toEqual(held.log());
    expect(of('error')).toEqual([]);
  });
});

describe('sessions() in another process', () => {
  async function acquired(replies: readonly Reply[], options: Partial<AgentOptions> = {}, shared: SessionOptions = {}) {
    const all = await processes(replies, options);
    const living = sessions(all.other, shared);
    onTestFinished(() => living.close());
    return { ...all, living, conversation: await living.acquire('c') };
  }

  it('give the conversation of the holder, with all members', async () => {
    const { conversation, held, living } = await acquired(['One.', 'Two.', 'Three.']);
    const items: unknown[] = [];
    const run = conversation.send('Hi', { by: 'ann' });
    for await (const item of run) items.push(item);
    expect(await run.result).toEqual(await held.send('again', { messageId: 'm2' }).result.then(() => run.result));
    expect((await run.result).text).toBe('One.');
    expect(items.some((item) => typeof item === 'object' && item !== null && 'seq' in item)).toBe(true);
    await conversation.rename('A title');
    await conversation.rewind('m2');
    expect(conversation.log()).toEqual(held.log());
    expect(conversation.view()).toEqual(held.view());
    expect(conversation.messages()).toEqual(held.messages());
    const shown = ({ id, cwd, owner, status, state, pending, unsettled, queue, inFlight }: Conversation) => [
      ...[id, cwd, owner, status, state, pending, unsettled, queue, inFlight],
    ];
    expect(shown(conversation)).toEqual(shown(held));
    await expect(conversation.rename('')).rejects.toMatchObject({ code: 'configuration' });
    await expect(conversation.decide({ callId: 'c1', action: 'guess' } as never)).rejects.toMatchObject({
      code: 'invalid_decision',
    });
    living.release(conversation);
    expect(() => living.release(conversation)).toThrow(/more often/);
  });

  it('read what was written before, whoever wrote it', async () => {
    const { living, held, conversation } = await acquired(['One.', 'Two.']);
    await held.send('Hi').result;
    const again = await living.acquire('c');
    expect(again).toBe(conversation);
    expect(again.log()).toEqual(held.log());
    expect(again.status).toBe('idle');
  });

  it('end what they follow after an idle time, and open the conversation when nobody holds it', async () => {
    const { living, held, conversation, other } = await acquired(['One.'], {}, { idleMs: 20 });
    await held.send('Hi').result;
    living.release(conversation);
    const completed = new Promise<void>((complete) => {
      conversation.log$(Number.MAX_SAFE_INTEGER).subscribe({ complete });
    });
    await completed;
    await held.close();
    const own = await living.acquire('c');
    await expect(other.open('c')).rejects.toMatchObject({ code: 'session_busy' });
    expect(own.log()).toHaveLength(held.log().length);
  });

  it('carry an act out themselves if its holder is gone by then', async () => {
    const { store, living, held, conversation } = await acquired(['One.']);
    await held.send('Hi').result;
    await held.close();
    await conversation.rename('A title');
    expect((await store.list())[0]).toMatchObject({ title: 'A title' });
    expect(conversation.log().at(-1)).toMatchObject({ type: 'renamed' });
    // The next request has the conversation itself.
    expect(await living.acquire('c')).not.toBe(conversation);
  });

  it('show the waiting calls of sub-agents, and decide them', async () => {
    const ask = echoTool('ask');
    const asking = (id: string): Reply => [call(id, 'ask', { m: id })];
    const tools = [ask.tool, subAgents({ model: byTask({ alpha: [asking('x'), [submit('s1', 'A')]] }) })];
    const { conversation } = await acquired([[spawn('p', 'alpha')], 'done'], { tools, plugins: [asks().plugin] });
    expect((await conversation.send('go').result).termination).toBe('Suspended');
    await expect.poll(() => conversation.pending.map(({ path }) => path)).toEqual([['p', 'x']]);
    expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('applied');
    expect((await conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['x']);
  });

  it("find no other owner's conversation", async () => {
    const { living, store } = await acquired([]);
    const agent = createAgent({ model: scripted([]), store });
    onTestFinished(() => agent.close());
    await agent.open('d', { owner: 'bob' });
    await expect(living.acquire('d', { owner: 'ann' })).rejects.toMatchObject({ code: 'not_found' });
    expect((await living.acquire('d', { owner: 'bob' })).owner).toBe('bob');
    await expect(living.acquire('d', { owner: 'ann' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(living.acquire('nothing', { existing: true })).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('createHandlers in another process', () => {
  it('add the overview, answer the result of a run, and take the ids of runs and resumptions', async () => {
    const { other, holder, held } = await processes([[call('c1', 'pay')], 'Paid.', new Error('broken')], {
      tools: [pay],
      policies: { modelRetry: { attempts: 1 } },
    });
    const [there, here] = [asker(other), asker(holder)];
    const sent = await there('POST', '/c/messages?overview', { content: 'Pay.', messageId: 'm1' });
    expect(sent).toMatchObject({ status: 202, body: { messageId: 'm1', overview: { createdAt: expect.any(Number) } } });
    await expect.poll(() => held.status).toBe('waiting');
    const shown = await there('GET', '/c?overview');
    expect(shown.body.overview).toMatchObject({ entries: held.log().length, status: 'waiting' });
    await there('POST', '/c/decisions', { callId: 'c1', action: 'approve' });
    const resumed = await there('POST', '/c/resume', { resumptionId: 'again' });
    expect(resumed).toMatchObject({ status: 202, body: { runId: expect.any(String) } });
    await expect.poll(() => held.status).toBe('idle');
    expect((await there('POST', '/c/resume', { resumptionId: 'again' })).body).toEqual(resumed.body);
    expect((await there('POST', '/c/cancel', { runId: resumed.body.runId })).status).toBe(200);
    const failed = await there('POST', '/c/messages', { content: 'Hi' });
    await expect.poll(() => held.status).toBe('error');
    const result = await there('GET', `/c/runs/${failed.body.runId}`);
    expect(result.body).toMatchObject({ termination: 'Error', error: { message: expect.stringContaining('broken') } });
    expect((await there('GET', '/c/runs/nothing')).status).toBe(404);
    expect((await there('GET', '/c')).body).toMatchObject({ status: 'error', entries: held.log().length });
    await held.close();
    // Nobody holds it now, so any process answers.
    expect((await here('GET', '/c')).body).toMatchObject({ entries: held.log().length });
  });

  it('act once on a request that is repeated at another process', async () => {
    const { other, holder, held } = await processes([[call('c1', 'pay')], 'Paid.', 'Two.', 'Three.'], { tools: [pay] });
    await held.send('Pay.').result;
    await held.close();
    const shared = sessions(holder);
    const [there, here] = [asker(other), asker(holder, { sessions: shared })];
    const decision = { callId: 'c1', action: 'approve' };
    await here('GET', '/c');
    expect((await here('POST', '/c/decisions?request=r1', decision)).body).toEqual({ receipt: 'applied' });
    expect((await there('POST', '/c/decisions?request=r1', decision)).body).toEqual({ receipt: 'applied' });
    expect((await there('POST', '/c/decisions?request=r2', decision)).body).toEqual({ receipt: 'duplicate' });
    const resumed = await there('POST', '/c/resume?request=r3');
    await expect.poll(async () => (await there('GET', '/c')).body.status).toBe('idle');
    expect((await here('POST', '/c/resume?request=r3')).body).toEqual(resumed.body);
    // A message without an id of its own.
    await here('POST', '/c/messages?request=r4', { content: 'Hi' });
    await expect.poll(async () => (await there('GET', '/c')).body.status).toBe('idle');
    await there('POST', '/c/messages?request=r4', { content: 'Hi' });
    const { view } = (await there('GET', '/c')).body as { view: { cycles: unknown[] } };
    expect(view.cycles).toHaveLength(2);
    await shared.close();
  });

  it('refuse what the holder refuses, with its code', async () => {
    const { other, held } = await processes([during(() => new Promise(() => {}), 'never')]);
    const there = asker(other);
    held.send('Hi');
    expect(await there('POST', '/c/messages', { content: 'again' })).toMatchObject({ status: 409 });
    expect(await there('POST', '/c/messages', { content: 5 })).toMatchObject({ status: 400 });
    expect(await there('POST', '/c/settlements', { callId: 'x', how: 5 })).toMatchObject({ status: 400 });
    expect((await there('POST', '/c/steer', { content: 'Faster.' })).status).toBe(202);
    expect((await there('POST', '/c/cancel')).body).toEqual({ status: 'idle' });
    expect((await there('DELETE', '/c')).status).toBe(204);
    expect((await there('GET', '/c')).status).toBe(404);
  });

  it('a reader of a conversation that was idle here receives what happens after another process has opened it', {
    timeout: 10_000,
  }, async () => {
    const store = sharedMemoryStore();
    const [one, two] = [scripted([]), scripted(['Hello.'])].map((model) => createAgent({ model, store })) as [
      Agent,
      Agent,
    ];
    onTestFinished(() => Promise.all([one.close(), two.close()]).then(() => undefined));
    const shared = sessions(one, { idleMs: 10 });
    const handler = createHandlers(one, { authorize, sessions: shared });
    const ask = asker(one, { sessions: shared });
    await ask('POST', '', { id: 'c' });
    const events = await handler(new Request('http://here/conversations/c/events'));
    const reader = events.body?.getReader();
    await reader?.read();
    // It is closed when it has been idle.
    await expect.poll(async () => (await store.stateOf('c')).isHeld).toBe(false);
    const conversation = await two.open('c');
    await conversation.send('Hi').result;
    const text = await readUntil(reader, (read) => read.includes('RunFinished'));
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, seq]) => Number(seq));
    expect(ids).toEqual(conversation.log().map(({ seq }) => seq));
    expect(text).toContain('"text-delta"');
    await reader?.cancel();
    await shared.close();
  });
});

describe('runchart/client behind two processes', () => {
  it('notices nothing, whichever process its requests reach', async () => {
    const replies = ['One.', [call('c1', 'pay')], 'Paid.', new Error('broken')];
    const { holder, other, held } = await processes(replies, {
      tools: [pay],
      policies: { modelRetry: { attempts: 1 } },
    });
    const handlers = [holder, other].map((agent) => createHandlers(agent, { authorize }));
    let turn = 0;
    const fetch = (url: string, init: RequestInit): Promise<Response> => {
      turn += 1;
      return handlers[turn % 2]?.(new Request(url, init)) as Promise<Response>;
    };
    const client = connect({ baseURL: 'http://here', fetch: fetch as never });
    const conversation = await client.open('c');
    expect((await conversation.send('Hi').result).text).toBe('One.');
    expect((await conversation.send('Pay.').result).termination).toBe('Suspended');
    expect(conversation.pending).toEqual(held.pending);
    expect(await conversation.decide({ callId: 'c1', action: 'approve' })).toBe('applied');
    expect((await conversation.resume().result).text).toBe('Paid.');
    const failed = await conversation.send('Fail.').result;
    expect(failed.error?.message).toContain('broken');
    await conversation.cancel();
    expect([conversation.status, conversation.log()]).toEqual([held.status, held.log()]);
    await client.close();
  });
});

describe('a conversation that another process is creating', () => {
  it('is refused as unavailable, and never as missing, however many ask for it at once', async () => {
    const store = sharedMemoryStore();
    const handle = await store.open('c');
    const agent = createAgent({ model: wrongModel, store });
    onTestFinished(async () => {
      await agent.close();
      await handle.close();
    });
    const ask = asker(agent);
    const { stateOf } = store;
    store.stateOf = async (id) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return stateOf(id);
    };
    let isOver = false;
    const looking = (async () => {
      while (!isOver) expect((await ask('GET', '/c')).status).toBe(404);
    })();
    const answers = await Promise.all([1, 2, 3].map(() => ask('POST', '', { id: 'c' })));
    isOver = true;
    await looking;
    expect(answers.map(({ status, body }) => [status, body.code])).toEqual(answers.map(() => [503, 'unavailable']));
  });
});
