/** The connection of a remote conversation: cut, restarted, refused, shared, and answered falsely. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { Observable } from 'rxjs';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { connect } from '../../src/client/index.ts';
import { type AgentOptions, defineTool, memoryStore, RunchartError, subAgents, toolResult } from '../../src/index.ts';
import { call, deaf, during, scripted, t } from '../support/scriptedReplies.ts';
import { portOf } from '../transports/agentServer.ts';
import { clientOf, collected, proxyOf, quick, serverOf, shown, textOf } from './places.ts';

const agentOf =
  (replies: Parameters<typeof scripted>[0], more: Partial<AgentOptions> = {}) =>
  (): AgentOptions => ({ model: scripted(replies), ...more });

function gate() {
  let open = (): void => {};
  const wait = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { wait, open: () => open() };
}

it('a socket that is cut in the middle of a reply: no entry is missed or repeated, and the text is whole', async () => {
  const gates = [gate(), gate(), gate()];
  const slow = async function* () {
    for (const [index, { wait }] of gates.entries()) {
      yield t(`${index} `);
      await wait;
    }
    yield t('end');
    yield { type: 'finish', reason: 'stop' } as const;
  };
  const server = await serverOf(agentOf([slow, 'second']));
  const proxy = await proxyOf(server.base);
  const conversation = await clientOf(proxy.base).open('a');
  const states = collected(conversation.connection$);
  const [entries, live] = [collected(conversation.log$()), collected(conversation.live$)];
  const run = conversation.send('go');
  for (const [index, { open }] of gates.entries()) {
    const text = ['0 ', '0 1 ', '0 1 2 '][index];
    await expect.poll(() => conversation.inFlight?.text).toBe(text);
    expect(textOf(live)).toBe(text);
    const opened = proxy.opened();
    expect(proxy.cut()).toBeGreaterThan(0);
    open();
    await expect.poll(() => proxy.opened()).toBeGreaterThan(opened);
  }
  expect(await run.text).toBe('0 1 2 end');
  proxy.cut();
  expect(await conversation.send('again').text).toBe('second');
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
  expect(entries).toEqual(conversation.log());
  const direct = await clientOf(server.base).open('a');
  expect(shown(conversation)).toEqual(shown(direct));
  expect(states.filter(({ state }) => state === 'connecting').length).toBeGreaterThan(3);
  expect(states.at(-1)).toEqual({ state: 'open' });
});

it('a server that restarts with the same store: the client continues, and an interrupted run has ended', async () => {
  const store = memoryStore();
  const server = await serverOf(agentOf([deaf(t('half'))], { store }));
  const conversation = await clientOf(server.base).open('a');
  const run = conversation.send('go');
  await expect.poll(() => conversation.inFlight?.text).toBe('half');
  await server.restart();
  expect(await run.result).toMatchObject({ termination: 'Cancelled', reason: 'interrupted' });
  await expect.poll(() => conversation.status).toBe('idle');
  expect(conversation.inFlight).toBe(null);
  await expect.poll(() => conversation.connection.state).toBe('open');
  const again = conversation.resume();
  await expect.poll(() => conversation.inFlight?.text).toBe('half');
  await again.cancel();
  expect((await again.result).termination).toBe('Cancelled');
});

it('two clients of one conversation see and do the same', async () => {
  const server = await serverOf(agentOf([deaf(t('half')), 'two']));
  const [one, two] = [await clientOf(server.base).open('a'), await clientOf(server.base).open('a')];
  const run = one.send('go');
  await expect.poll(() => two.inFlight?.text).toBe('half');
  expect(two.status).toBe('active');
  const third = await clientOf(server.base).open('a');
  await expect.poll(() => third.inFlight?.text).toBe('half');
  expect(third.status).toBe('active');
  await two.cancel();
  expect((await run.result).termination).toBe('Cancelled');
  expect(await third.send('again').text).toBe('two');
  await expect.poll(() => one.log().length).toBe(third.log().length);
  await expect.poll(() => two.log().length).toBe(third.log().length);
  expect(shown(one)).toEqual(shown(third));
  expect(shown(two)).toEqual(shown(third));
});

/** Cuts the connection once the server has answered an act, so that the answer is lost. */
function losingAnswers(acts: RegExp, count: number): (listener: RequestListener) => RequestListener {
  let left = count;
  return (listener) => (request, response) => {
    const isLost = request.method === 'POST' && acts.test(request.url ?? '') && left > 0;
    if (isLost) {
      left -= 1;
      const lose = (): ServerResponse => {
        request.socket.destroy();
        return response;
      };
      Object.assign(response, { write: () => true, writeHead: () => response, end: lose });
    }
    listener(request, response);
  };
}

it('an act whose answer is lost is repeated, and happens once', async () => {
  const ran: string[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    needsApproval: true,
    execute: (_, { callId }) => {
      ran.push(callId);
      return toolResult.success('paid');
    },
  });
  const model = scripted([[call('c1', 'pay')], 'paid', deaf(t('x'))]);
  const server = await serverOf(() => ({ model, tools: [pay] }), {
    around: losingAnswers(/\/(messages|decisions|resume|cancel)\b/, 4),
  });
  const conversation = await clientOf(server.base).open('a');
  const run = conversation.send('go');
  expect((await run.result).termination).toBe('Suspended');
  expect(await conversation.decide({ callId: 'c1', suspension: 1, action: 'approve' })).toBe('applied');
  expect(await conversation.resume().text).toBe('paid');
  expect(ran).toEqual(['c1']);
  const last = conversation.send('and then');
  await expect.poll(() => conversation.inFlight?.text).toBe('x');
  await conversation.cancel();
  expect((await last.result).termination).toBe('Cancelled');
  const types = conversation.log().map(({ type }) => type);
  const countOf = (kind: string) => types.filter((type) => type === kind).length;
  expect([countOf('user-message'), countOf('decision'), countOf('run-resumed'), countOf('run-stop')]).toEqual([
    2, 1, 1, 2,
  ]);
});

it('headers are asked for with each request, and a token that expired is replaced', async () => {
  let asked = 0;
  const isFresh = (request: Request): boolean => Number(request.headers.get('authorization')) % 2 === 0;
  const server = await serverOf(agentOf(['hello', 'again']), { handling: { authorize: isFresh } });
  const proxy = await proxyOf(server.base);
  const headers = async () => {
    asked += 1;
    return { authorization: `${asked}` };
  };
  const conversation = await clientOf(proxy.base, { headers }).open('a');
  expect(await conversation.send('go').text).toBe('hello');
  proxy.cut();
  await expect.poll(() => conversation.connection.state).toBe('connecting');
  await expect.poll(() => conversation.connection.state).toBe('open');
  expect(await conversation.send('go').text).toBe('again');
  expect(asked).toBeGreaterThan(8);
});

it('a refusal of the server is an error with its code, and ends the streams', async () => {
  let isAllowed = false;
  const server = await serverOf(agentOf([deaf(t('x'))]), { handling: { authorize: () => isAllowed } });
  const proxy = await proxyOf(server.base);
  const client = clientOf(proxy.base);
  await expect(client.open('a')).rejects.toMatchObject({ code: 'unauthorized', name: 'RunchartError' });
  await expect(client.list()).rejects.toMatchObject({ code: 'unauthorized' });
  isAllowed = true;
  const conversation = await client.open('a');
  const errors: unknown[] = [];
  const error = (value: unknown) => void errors.push(value);
  const streams: Observable<unknown>[] = [conversation.log$(), conversation.live$, conversation.view$];
  for (const stream of streams) stream.subscribe({ error });
  const run = conversation.send('go');
  await expect.poll(() => conversation.inFlight?.text).toBe('x');
  isAllowed = false;
  proxy.cut();
  await expect.poll(() => conversation.connection.state).toBe('failed');
  expect(conversation.connection.error?.code).toBe('unauthorized');
  expect(conversation.status).toBe('error');
  expect(errors.map((each) => (each as RunchartError).code)).toEqual(['unauthorized', 'unauthorized', 'unauthorized']);
  expect(await run.result).toMatchObject({ termination: 'Error', error: { code: 'unauthorized' } });
  await expect(conversation.decide({ callId: 'c', action: 'approve' })).rejects.toMatchObject({ code: 'unauthorized' });
});

it('a conversation that was deleted is not found', async () => {
  const server = await serverOf(agentOf(['one']));
  const conversation = await clientOf(server.base).open('a');
  await conversation.send('go').result;
  await fetch(`${server.base}/conversations/a`, { method: 'DELETE' });
  await expect.poll(() => conversation.connection.error?.code).toBe('not_found');
});

it('text that a lost connection cut off is dropped, also where the next attempt of the reply has no reset', async () => {
  const delta = (text: string): string => frame('live', { type: 'text-delta', runId: 'r', text });
  const bodies = [logOf(1) + delta('half'), frame('overview', overviewOf(1)) + delta('whole')];
  const base = await lying({ events: () => bodies.shift(), overview: overviewOf(1) });
  const conversation = await clientOf(base).open('a');
  const live = collected(conversation.live$);
  await expect.poll(() => conversation.inFlight?.text).toBe('whole');
  expect(live.map(({ type }) => type).slice(-2)).toEqual(['reset', 'text-delta']);
});

it('a conversation that was made anew under its id begins at entry 0', async () => {
  const bodies = [logOf(1), logOf(2), logOf(2)];
  const base = await lying({ events: () => bodies.shift() ?? logOf(2), overview: overviewOf(1) });
  const conversation = await clientOf(base).open('a');
  const seqs = collected(conversation.log$());
  await expect.poll(() => seqs.map(({ seq }) => seq)).toEqual([0, 1, 0, 1]);
  expect(conversation.log()[0]).toMatchObject({ createdAt: 2 });
});

const frame = (event: string, data: object): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
const overviewOf = (createdAt: number) => ({ createdAt, entries: 2, status: 'idle', pending: [], unsettled: [] });
const entryOf = (seq: number, more: object) => ({ seq, at: 1, conversationId: 'a', runId: null, ...more });
const entriesOf = (createdAt: number): string =>
  frame('entry', entryOf(0, { type: 'conversation', schema: 1, cwd: '/', createdAt })) +
  frame('entry', entryOf(1, { type: 'notice', code: 'x', text: 'y' }));
const logOf = (createdAt: number): string => frame('overview', overviewOf(createdAt)) + entriesOf(createdAt);

it('an id beyond the end of the log: a reset begins anew at entry 0', async () => {
  const bodies = [logOf(1), frame('live', { type: 'reset', runId: '' }) + entriesOf(1)];
  const base = await lying({ events: () => bodies.shift() ?? logOf(1), overview: overviewOf(1) });
  const conversation = await clientOf(base).open('a');
  const seqs = collected(conversation.log$());
  await expect.poll(() => seqs.map(({ seq }) => seq)).toEqual([0, 1, 0, 1]);
  expect(conversation.log()).toHaveLength(2);
});

/** A server that gives one scripted answer to every request. */
async function lying({ events, overview }: { events(): string | undefined; overview?: unknown }): Promise<string> {
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url?.includes('/events')) {
      const body = events();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void (body === undefined ? response.flushHeaders() : response.end(body));
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ id: 'a', overview }));
  };
  return `http://127.0.0.1:${await portOf(createServer(listener))}`;
}

const calm = { createdAt: 1, entries: 1, status: 'idle', pending: [], unsettled: [] };
it.each([
  ['a frame that is no JSON', 'event: entry\ndata: {"seq":\n\n', calm],
  ['an entry that is no object', 'event: entry\ndata: 7\n\n', calm],
  ['an entry without its fields', 'event: entry\ndata: {"seq":0,"type":"user-message","conversationId":"a"}\n\n', calm],
  ['an entry of another conversation', 'event: entry\ndata: {"seq":0,"type":"notice","conversationId":"b"}\n\n', calm],
  [
    'an entry out of order',
    'event: entry\ndata: {"seq":5,"type":"notice","conversationId":"a","code":"x","text":""}\n\n',
    calm,
  ],
  ['a live signal that is no JSON', 'event: live\ndata: {{\n\n', calm],
  ['an overview of nothing', 'event: overview\ndata: {}\n\n', calm],
  ['lines without end that are no events', 'x\n'.repeat(3000), calm],
  ['an overview that is missing', '', undefined],
  ['an overview with odd fields', '', { ...calm, pending: 7 }],
])('a server that sends %s is a bad answer, and nothing is thrown elsewhere', async (_, body, overview) => {
  const base = await lying({ events: () => body, overview });
  const error = await clientOf(base)
    .open('a')
    .then(
      () => undefined,
      (caught: unknown) => caught,
    );
  expect(RunchartError.isRunchartError(error) && error.code).toBe('bad_answer');
});

it.each([
  ['a page in place of JSON', 200, 'text/html', '<html>', 'bad_answer'],
  ['a list in place of an object', 200, 'application/json', '[]', 'bad_answer'],
  ['a text in place of an object', 200, 'application/json', '"x"', 'bad_answer'],
  ['404 without a code', 404, 'text/html', 'nothing here', 'not_found'],
  ['403 of a proxy', 403, 'text/html', 'no', 'unauthorized'],
  ['413 of a proxy', 413, 'text/html', 'no', 'too_large'],
  ['418', 418, 'text/plain', 'teapot', 'bad_answer'],
])('%s', async (_, status, type, body, code) => {
  const server = createServer((__, response) => void response.writeHead(status, { 'content-type': type }).end(body));
  const base = `http://127.0.0.1:${await portOf(server)}`;
  await expect(clientOf(base).open('a')).rejects.toMatchObject({ code });
});

it('a server that is not there is tried several times, then it is an error of the network', async () => {
  let tries = 0;
  const client = clientOf('http://127.0.0.1:9', {
    fetch: () => {
      tries += 1;
      return Promise.reject(new TypeError('fetch failed'));
    },
  });
  await expect(client.open()).rejects.toMatchObject({ code: 'network' });
  expect(tries).toBe(7);
});

it('a stream that ends or is silent is opened again', async () => {
  let opened = 0;
  const entry = {
    seq: 0,
    at: 1,
    conversationId: 'a',
    runId: null,
    type: 'conversation',
    schema: 1,
    cwd: '/',
    createdAt: 1,
  };
  const base = await lying({
    overview: calm,
    events: () => {
      opened += 1;
      return opened === 1
        ? `event: overview\ndata: ${JSON.stringify(calm)}\n\nevent: entry\ndata: ${JSON.stringify(entry)}\n\n`
        : undefined;
    },
  });
  const conversation = await clientOf(base, { silenceMs: 20 }).open('a');
  await expect.poll(() => opened).toBeGreaterThan(2);
  expect(conversation.log()).toHaveLength(1);
});

it('a subscriber that throws is reported, and the others receive everything', async () => {
  const server = await serverOf(agentOf(['one']));
  const facts: object[] = [];
  const client = clientOf(server.base, { logger: { warn: (fact) => void facts.push(fact) } });
  const conversation = await client.open('a');
  conversation.log$().subscribe(() => {
    throw new Error('mine');
  });
  const entries = collected(conversation.log$());
  await conversation.send('go').result;
  expect(entries).toEqual(conversation.log());
  expect(facts).toHaveLength(3);
  expect(facts[0]).toMatchObject({ event: 'subscriber-failed', error: { message: 'mine' } });
});

it('close ends streams, requests and timers; the run continues, and its result has the cause closed', async () => {
  const { wait, open } = gate();
  const server = await serverOf(agentOf([during(() => wait, 'done')]));
  const timers = new Set<() => void>();
  const counted = (ms: number, fire: () => void) => {
    const stop = quick.setTimer(ms, () => {
      timers.delete(stop);
      fire();
    });
    timers.add(stop);
    return () => {
      timers.delete(stop);
      stop();
    };
  };
  const client = clientOf(server.base, { setTimer: counted });
  const conversation = await client.open('a');
  const ended: string[] = [];
  const streams: { [name: string]: Observable<unknown> } = {
    log: conversation.log$(),
    live: conversation.live$,
    view: conversation.view$,
    connection: conversation.connection$,
  };
  for (const [name, stream] of Object.entries(streams)) stream.subscribe({ complete: () => void ended.push(name) });
  const run = conversation.send('go');
  await expect.poll(() => conversation.status).toBe('active');
  const steer = conversation.steer('left');
  const refused = expect(steer.delivered).rejects.toMatchObject({ code: 'closed' });
  await client.close();
  await refused;
  expect(ended.sort()).toEqual(['connection', 'live', 'log', 'view']);
  expect(await run.result).toMatchObject({ termination: 'Error', cause: 'closed' });
  expect(timers.size).toBe(0);
  expect(await conversation.send('x').result).toMatchObject({ error: { code: 'closed' } });
  await expect(client.open('a')).rejects.toMatchObject({ code: 'closed' });
  open();
  const again = await clientOf(server.base).open('a');
  await expect.poll(() => again.log().filter(({ type }) => type === 'run-stop').length).toBeGreaterThan(0);
});

it('list pages through all conversations, and takes a limit, a status and an owner', async () => {
  const server = await serverOf(agentOf([]));
  const client = clientOf(server.base);
  for (const id of ['a', 'b', 'c']) await (await client.open(id)).close();
  expect((await client.list()).map(({ id }) => id).sort()).toEqual(['a', 'b', 'c']);
  const [first] = await client.list({ limit: 1 });
  const rest = await client.list({ cursor: first?.cursor });
  expect([first, ...rest].map((row) => row?.id).sort()).toEqual(['a', 'b', 'c']);
  expect(await client.list({ status: 'waiting' })).toEqual([]);
  let owner = 'ann';
  const authorize = (): { by: string; owner?: string } => (owner === '' ? { by: 'host' } : { by: owner, owner });
  const owned = clientOf((await serverOf(agentOf([]), { handling: { authorize } })).base);
  for (owner of ['ann', 'bob']) await (await owned.open(`of-${owner}`)).close();
  owner = '';
  expect((await owned.list({ owner: 'ann' })).map(({ id }) => id)).toEqual(['of-ann']);
});

it('an option that cannot work is refused, and an image travels as base64', async () => {
  expect(() => connect({} as never)).toThrow('connect needs baseURL');
  expect(() => connect({ baseURL: 'http://x', header: {} } as never)).toThrow('header');
  const server = await serverOf(agentOf(['one']));
  const conversation = await clientOf(server.base).open('a');
  const png = Uint8Array.from(
    atob('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='),
    (c) => c.charCodeAt(0),
  );
  await conversation.send([{ type: 'image', mediaType: 'image/png', data: png }]).result;
  const message = conversation.log().find(({ type }) => type === 'user-message');
  expect(message).toMatchObject({ content: [{ type: 'image', mediaType: 'image/png' }] });
  const schema = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } } as const;
  expect((await conversation.send('x', { output: schema }).result).error?.code).toBe('configuration');
});

it.each([
  ['completed', 'hello', 'idle'],
  ['failed', new Error('no'), 'error'],
] as const)(
  'the status after a run that %s arrives with its result, and another client reads the server’s',
  async (_, reply, status) => {
    const server = await serverOf(agentOf([reply, reply]));
    const first = await clientOf(server.base).open('a');
    for (let turn = 0; turn < 2; turn += 1) {
      await first.send('hi').result;
      expect(first.status).toBe(status);
    }
    expect((await clientOf(server.base).open('a')).status).toBe(status);
    await server.restart();
    expect((await clientOf(server.base).open('a')).status).toBe('idle');
  },
);

it('a conversation is active while it works on after the end of a sub-agent', async () => {
  const { wait, open } = gate();
  const spawn = call('c1', 'spawn_agents', { tasks: [{ id: 'one', task: 'look' }] });
  const server = await serverOf(() => ({
    model: scripted([[spawn], during(() => wait, 'done')]),
    tools: [subAgents({ model: scripted([[call('s1', 'submit_result', { result: 'seen' })]]) })],
  }));
  const conversation = await clientOf(server.base).open('a');
  const run = conversation.send('go');
  await expect.poll(() => conversation.log().some(({ type }) => type === 'tool-result')).toBe(true);
  expect(conversation.status).toBe('active');
  open();
  expect(await run.text).toBe('done');
});
