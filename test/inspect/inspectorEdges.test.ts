/** The limits of an inspector, and each act of a page: with and without control, by a named person and by none. */
import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { ConfigurationError, createAgent, type LogEntry } from '../../src/index.ts';
import { startLogInspector, versionOfPackage } from '../../src/inspect/inspector.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { PageConnection, type PageOptions } from '../../src/inspect/page.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { startServer } from '../../src/inspect/server.ts';
import type { ToPage } from '../../src/inspect/wire.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { VirtualClock } from '../support/virtualClock.ts';
import { approvedTool } from './approvalTool.ts';
import { kept } from './kept.ts';
import { Watcher } from './pageWatcher.ts';

describe('an inspector of the command line', () => {
  it.each([
    { port: 65_536 },
    { port: -1 },
    { port: 1.5 },
    { port: '80' },
    { open: 'yes' },
    { control: 1 },
    { host: 'x' },
  ])('refuses the options %j', async (options) => {
    await expect(startLogInspector(options as never)).rejects.toThrow(ConfigurationError);
  });

  it('names the version of the package, and is read-only unless control is true', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(versionOfPackage()).toBe(version);
    for (const control of [undefined, false, true]) {
      const inspector = kept(await startLogInspector(control === undefined ? {} : { control }));
      const page = kept(await Watcher.open(inspector.url));
      expect(await page.see('hello')).toMatchObject({ version, control: control ?? false });
      expect(inspector.pages).toBe(1);
    }
  });

  it('shows a stored log by its file, with the lines that could not be read only if there are any', async () => {
    const inspector = kept(await startLogInspector());
    const entry = (seq: number) =>
      ({ seq, at: seq, conversationId: 'c', runId: null, type: 'notice', code: 'n', text: 't' }) as LogEntry;
    inspector.show('a.jsonl', [entry(0), entry(1)], ['it is no JSON']);
    inspector.show('b.jsonl', [], []);
    const page = kept(await Watcher.open(inspector.url));
    await page.see('conversation', ({ conversation }) => conversation === 'b.jsonl');
    expect(page.all('conversation').map(({ n: _, at: __, ...rest }) => rest)).toEqual([
      { type: 'conversation', conversation: 'a.jsonl', of: 'file', unread: ['it is no JSON'] },
      { type: 'conversation', conversation: 'b.jsonl', of: 'file' },
    ]);
    expect(page.all('entry').map(({ conversation, entry: { seq } }) => [conversation, seq])).toEqual([
      ['a.jsonl', 0],
      ['a.jsonl', 1],
    ]);
  });

  it('closes once and again, and its pages with it', async () => {
    const inspector = await startLogInspector();
    const socket = new WebSocket(inspector.url.replace('http', 'ws').replace('/?', '/ws?'));
    await new Promise((resolve) => socket.once('open', resolve));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await inspector.close();
    await closed;
    await inspector.close();
    expect(inspector.pages).toBe(0);
  });
});

it('a server takes 64 pages and apps together, and another one when one has left', async () => {
  const records = new RecordLog(() => 0);
  const observed = new Observed(records);
  const files = new Map();
  const options = { port: 0, control: false, version: '0', records, observed, files, stallMs: 1_000 };
  const server = kept(await startServer(options));
  const address = (path: string) => server.url.replace('http', 'ws').replace('/?', `/${path}?`);
  const connected = (path: string): Promise<WebSocket | number | undefined> => {
    const socket = new WebSocket(address(path));
    kept({ close: () => socket.terminate() });
    socket.on('error', () => undefined);
    return new Promise((resolve) => {
      socket.once('open', () => resolve(socket));
      socket.once('unexpected-response', (_, { statusCode }) => resolve(statusCode));
    });
  };
  const sockets = await Promise.all(Array.from({ length: 64 }, (_, at) => connected(at % 2 === 0 ? 'ws' : 'app')));
  expect(sockets.filter((socket) => typeof socket === 'object')).toHaveLength(64);
  expect([await connected('ws'), await connected('app'), server.pages]).toEqual([503, 503, 32]);
  (sockets[0] as WebSocket).close();
  await expect.poll(() => server.pages).toBe(31);
  expect(typeof (await connected('app'))).toBe('object');
});

/** A page without a socket, whose clock the test moves. */
function page(more: Partial<PageOptions> = {}) {
  const clock = new VirtualClock(0, 1);
  const records = new RecordLog(clock.now);
  const observed = new Observed(records);
  const messages: ToPage[] = [];
  const channel = { waiting: 0, drop: () => undefined };
  const connection = new PageConnection(
    { send: (text) => void messages.push(...(JSON.parse(text) as ToPage[])), ...channel },
    {
      ...{ records, observed, session: 's', version: '1', control: true, stallMs: 1_000, appContext: () => null },
      ...{ now: clock.now, setTimer: clock.setTimer, ...more },
    },
  );
  onTestFinished(() => connection.close());
  const add = () => records.add({ type: 'conversation', conversation: `c${records.next}`, of: 'file' });
  const say = (request: object, by?: string) => connection.receive(JSON.stringify(request), by);
  const numbers = () => messages.flatMap((message) => ('n' in message ? [message.n] : []));
  return { clock, records, observed, messages, connection, add, say, numbers };
}

describe('a page that subscribes', () => {
  it.each([
    [0, undefined, 0],
    [2, 's', 2],
    [4, 's', 4],
    [9, 's', 4],
    [2, undefined, 0],
    [2, 'other', 0],
  ])('from record %i of the session %s gets the records from %i on', (from, session, expected) => {
    const { add, say, messages, numbers } = page();
    for (let at = 0; at < 4; at += 1) add();
    say({ type: 'subscribe', from, ...(session && { session }) });
    expect(messages[0]).toMatchObject({ type: 'hello', from: expected, next: 4, dropped: 0, session: 's' });
    expect(numbers()).toEqual([0, 1, 2, 3].slice(expected));
  });

  it('gets each record and greeting once, and its second subscription counts as ignored', async () => {
    const { add, say, clock, connection, messages, numbers } = page();
    add();
    for (const _ of [1, 2]) say({ type: 'subscribe', from: 0 });
    connection.receive('nonsense');
    add();
    await clock.advance(1_000);
    expect([numbers(), messages.filter(({ type }) => type === 'hello').length, connection.ignored]).toEqual([
      [0, 1],
      1,
      2,
    ]);
  });

  it('gets nothing after its close, leaves no timer, and its later messages are ignored', async () => {
    const { add, say, clock, connection, messages } = page();
    say({ type: 'subscribe', from: 0 });
    add();
    connection.close();
    connection.close();
    const before = messages.length;
    add();
    say({ type: 'context', ask: 1, actor: 'a' });
    say({ type: 'subscribe', from: 0 });
    await clock.advance(5_000);
    expect([messages.length, clock.waiting, connection.ignored]).toEqual([before, 0, 2]);
  });

  it('gets the signals of a reply at most ten times a second, joined', async () => {
    const { say, clock, observed, messages } = page();
    const agent = kept(createAgent({ model: scripted(['hello']) }));
    const conversation = await agent.open('a');
    observed.attach(conversation);
    say({ type: 'subscribe', from: 0 });
    await clock.advance(1_000);
    await conversation.send('go').result;
    await clock.advance(1_000);
    const signals = messages.flatMap((message) => (message.type === 'live' ? [message.signal] : []));
    expect(signals.filter(({ type }) => type === 'status')).toEqual([]);
    expect(signals.flatMap((signal) => (signal.type === 'text-delta' ? [signal.text] : [])).join('')).toBe('hello');
  });
});

describe('an act of a page', () => {
  async function waiting(control = true) {
    const bench = page({ control });
    const model = scripted([[call('c1', 'note', { text: 'x' })], 'noted', 'more']);
    const agent = kept(createAgent({ model, tools: [approvedTool] }));
    const conversation = await agent.open('a');
    bench.observed.attach(conversation);
    await conversation.send('go').result;
    let asks = 0;
    const ask = async (request: object, by?: string) => {
      asks += 1;
      bench.say({ ...request, ask: asks }, by);
      const isAnswer = (message: ToPage) => 'ask' in message && message.ask === asks;
      await expect.poll(() => bench.messages.some(isAnswer)).toBe(true);
      return bench.messages.find(isAnswer);
    };
    return { ...bench, agent, conversation, ask };
  }
  const approve = { callId: 'c1', suspension: 1, action: 'approve' };
  const acts = [
    { type: 'decide', conversation: 'a', decision: approve },
    { type: 'settle', conversation: 'a', callId: 'c1', how: { retry: true } },
    { type: 'resume', conversation: 'a' },
    { type: 'cancel', conversation: 'a' },
    { type: 'send', conversation: 'a', content: 'hi' },
    { type: 'event', conversation: 'a', actor: 'a0', event: { type: 'GO' } },
  ];

  it.each(acts)('is refused without control, and for a conversation that is not open: $type', async (act) => {
    const readOnly = await waiting(false);
    const before = readOnly.conversation.log().length;
    expect(await readOnly.ask(act)).toMatchObject({ type: 'refused', code: 'read_only' });
    expect(readOnly.conversation.log()).toHaveLength(before);
    const { ask } = await waiting();
    expect(await ask({ ...act, conversation: 'other' })).toMatchObject({ type: 'refused', code: 'not_found' });
  });

  it.each([
    [undefined, undefined, 'inspector'],
    [undefined, 'eve', 'eve'],
    ['ada', undefined, 'ada'],
    ['ada', 'eve', 'ada'],
  ])('of the person %s who says to be %s is by %s', async (by, claimed, name) => {
    const { ask, conversation } = await waiting();
    const decision = { ...approve, ...(claimed && { by: claimed }) };
    expect(await ask({ type: 'decide', conversation: 'a', decision }, by)).toMatchObject({
      value: { receipt: 'applied' },
    });
    expect(conversation.log().find(({ type }) => type === 'decision')).toMatchObject({ decision: { by: name } });
  });

  it('a message has its author, and starts a run if it has no kind', async () => {
    const { ask, conversation } = await waiting();
    await conversation.cancel();
    const answer = await ask({ type: 'send', conversation: 'a', content: 'hi' }, 'ada');
    expect(answer).toMatchObject({
      type: 'answer',
      value: { messageId: expect.any(String), runId: expect.any(String) },
    });
    const sent = conversation.log().filter(({ type }) => type === 'user-message');
    expect(sent.at(-1)).toMatchObject({ by: 'ada', kind: 'direct' });
  });

  it.each(['steer', 'followUp'] as const)('a message of the kind %s waits as one, while a call waits', async (kind) => {
    const { say, conversation } = await waiting();
    say({ type: 'send', ask: 1, conversation: 'a', content: 'hi', kind }, 'ada');
    const queued = () => conversation.log().find(({ type }) => type === 'message-queued');
    await expect.poll(queued).toMatchObject({ by: 'ada', kind });
  });

  it('answers what it did: the receipt, the run, the status', async () => {
    const { ask, conversation } = await waiting();
    const decide = { type: 'decide', conversation: 'a', decision: approve };
    expect(await ask(decide)).toMatchObject({ value: { receipt: 'applied' } });
    expect(await ask(decide)).toMatchObject({ value: { receipt: 'duplicate' } });
    expect(await ask({ type: 'resume', conversation: 'a' })).toMatchObject({ value: { runId: expect.any(String) } });
    await expect.poll(() => conversation.status).toBe('idle');
    expect(await ask({ type: 'cancel', conversation: 'a' })).toMatchObject({ value: { status: 'idle' } });
  });
});

describe('the records of an inspector', () => {
  const limits = { moves: 3, events: 2, rest: 8 };
  const records = () => new RecordLog(() => 0, limits);
  const status = { type: 'status', conversation: 'c', status: 'idle' } as const;

  it.each([
    [10, 10, 0],
    [11, 8, 3],
    [13, 10, 3],
    [14, 8, 6],
  ])('of %i others the latest %i are kept, and %i are dropped', (count, length, dropped) => {
    const log = records();
    for (let at = 0; at < count; at += 1) log.add({ ...status });
    expect([[...log.since(0)].length, log.dropped, log.countSince(0), log.next]).toEqual([
      length,
      dropped,
      length,
      count,
    ]);
    expect([...log.since(0)].at(-1)?.n).toBe(count - 1);
  });

  it('never drop a conversation or a chart', () => {
    const log = records();
    for (let at = 0; at < 20; at += 1) log.add({ type: 'conversation', conversation: `c${at}`, of: 'file' });
    for (let at = 0; at < 20; at += 1) log.add({ ...status });
    expect([...log.since(0)].filter(({ type }) => type === 'conversation')).toHaveLength(20);
  });

  it('keep the latest moves in their order, however many there were', () => {
    const log = records();
    for (let at = 0; at < 8; at += 1) {
      log.settled('a', 'tick', `${at}`, 'active');
      const kept = [...log.since(0)].map((record) => record.type === 'settled' && record.value);
      expect(kept).toEqual(Array.from({ length: Math.min(3, at + 1) }, (_, back) => `${at - Math.min(2, at) + back}`));
    }
    expect([log.dropped, log.countSince(6), log.countSince(99)]).toEqual([5, 2, 0]);
  });

  it('reach each listener until it stops listening', () => {
    const log = records();
    const heard: number[][] = [[], []];
    const stops = heard.map((list) => log.listen(() => void list.push(log.next)));
    log.add({ ...status });
    log.settled('a', 'tick', 'x', 'active');
    log.transition('a', 0, 'tick', [], 'x');
    log.entry('c', {} as LogEntry);
    stops[0]?.();
    stops[0]?.();
    log.event('a', undefined, { type: 'x' }, (value) => value);
    expect(heard.map(({ length }) => length)).toEqual([4, 5]);
  });
});
