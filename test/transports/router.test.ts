/** The router over transports: order, answers, turns, back-pressure, refusals. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AgentOptions, createAgent } from '../../src/index.ts';
import { codingTools, permissions } from '../../src/node.ts';
import { Broadcast } from '../../src/transports/events/broadcast.ts';
import { ClientFeed } from '../../src/transports/events/clientFeed.ts';
import {
  type Incoming,
  inProcessTransport,
  type Outgoing,
  type RouteOptions,
  route,
  stdioTransport,
} from '../../src/transports/index.ts';
import { during, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

function routed(replies: readonly Reply[], options: RouteOptions = {}, more: Partial<AgentOptions> = {}) {
  const agent = createAgent({ model: scripted(replies), ...more });
  onTestFinished(() => agent.close());
  const { server, client } = inProcessTransport();
  const outgoing: Outgoing[] = [];
  client.messages$.subscribe((message) => outgoing.push(message));
  const ended = route(agent, server, options);
  const of = <T extends Outgoing['type']>(type: T) =>
    outgoing.filter((each): each is Extract<Outgoing, { type: T }> => each.type === type);
  return { agent, client, outgoing, ended, of };
}
const user = (content: string, more: object = {}): Incoming =>
  ({ type: 'user-message', conversation: 'a', content, ...more }) as Incoming;

describe('a router', () => {
  it('TRC-1 S002-34 TRC-14 it reports two turns in one process as one log without gap or repetition, with system-init once and first', async () => {
    const { client, outgoing, of } = routed(['one', 'two'], {
      multiTurn: true,
      about: { model: 'm', tools: ['Read'] },
    });
    client.send(user('hi', { requestId: 'r1' }));
    await expect.poll(() => of('turn-result').length).toBe(1);
    client.send(user('again'));
    await expect.poll(() => of('turn-result').length).toBe(2);
    expect(outgoing[0]).toMatchObject({ type: 'system-init', version: 1, model: 'm', tools: ['Read'] });
    expect(of('system-init').length).toBe(1);
    expect(of('entry').map(({ entry }) => entry.seq)).toEqual(of('entry').map((_, index) => index));
    expect(of('turn-result').map(({ result }) => [result.subtype, result.text, result.turns])).toEqual([
      ['success', 'one', 1],
      ['success', 'two', 1],
    ]);
    expect(of('answer')[0]).toMatchObject({ requestId: 'r1', value: { conversation: 'a' } });
    const stop = outgoing.findIndex((each) => each.type === 'entry' && each.entry.type === 'run-stop');
    expect(outgoing.findIndex(({ type }) => type === 'turn-result')).toBeGreaterThan(stop);
    client.send({ type: 'close', conversation: 'a' });
    await expect
      .poll(() => of('result'))
      .toMatchObject([{ subtype: 'success', result: 'two', exitReason: 'end_turn' }]);
  });

  it('TRC-14 system-init contains model, tools and permission mode of the agent, once for each opening of a conversation', async () => {
    const { client, outgoing, of } = routed(
      ['one', 'two'],
      {},
      {
        tools: codingTools(),
        plugins: [permissions({ mode: 'acceptEdits' })],
        cwd: '/tmp',
      },
    );
    client.send(user('hi'));
    await expect.poll(() => of('result').length).toBe(1);
    client.send(user('again'));
    await expect.poll(() => of('result').length).toBe(2);
    const tools = ['Read', 'Ls', 'Glob', 'Grep', 'Bash', 'Write', 'Edit'];
    const systemInit = { conversation: 'a', cwd: '/tmp', model: 'scripted', tools, permissionMode: 'acceptEdits' };
    expect(of('system-init')).toEqual(
      [systemInit, systemInit].map((each) => ({ type: 'system-init', version: 1, ...each })),
    );
    expect(outgoing[0]?.type).toBe('system-init');
  });

  it('an agent that wraps another one and does not describe itself is served too', async () => {
    const { agent } = routed(['one']);
    const around = { open: agent.open.bind(agent), list: agent.list.bind(agent) } as unknown as typeof agent;
    const { server, client } = inProcessTransport();
    const outgoing: Outgoing[] = [];
    client.messages$.subscribe((message) => outgoing.push(message));
    void route(around, server, { multiTurn: true });
    client.send(user('hi'));
    await expect.poll(() => outgoing.at(-1)?.type).toBe('turn-result');
    expect(outgoing[0]).toMatchObject({ type: 'system-init', model: '', tools: [] });
    client.close();
  });

  it('one turn ends with its result, which is reported last, and the next message continues after it', async () => {
    const { client, outgoing, of } = routed(['one', 'two']);
    client.send(user('hi'));
    await expect.poll(() => outgoing.at(-1)).toMatchObject({ type: 'result', result: 'one', exitReason: 'end_turn' });
    client.send(user('again'));
    await expect.poll(() => outgoing.at(-1)).toMatchObject({ type: 'result', result: 'two' });
    expect(of('entry').map(({ entry }) => entry.seq)).toEqual(of('entry').map((_, index) => index));
  });

  it.each([true, false])(
    'after close the result is the last message, and the run continues without further ones (multiTurn %s)',
    async (multiTurn) => {
      const { agent, client, outgoing, of } = routed(['one', 'two'], { multiTurn });
      client.send(user('hi'));
      client.send({ type: 'close', conversation: 'a' });
      await expect.poll(() => of('result').length).toBe(1);
      await expect.poll(async () => (await agent.list())[0]).toMatchObject({ status: 'idle', lastCause: 'end_turn' });
      await flush();
      const last = outgoing.findIndex(({ type }) => type === 'result');
      expect(outgoing.slice(last + 1).filter(({ type }) => type !== 'answer')).toEqual([]);

      client.send(user('again'));
      await expect.poll(() => of(multiTurn ? 'turn-result' : 'result').length).toBe(multiTurn ? 1 : 2);
      expect(of('entry').map(({ entry }) => entry.seq)).toEqual(of('entry').map((_, index) => index));
    },
  );

  it('a result has the cost of its run, null where a price is unknown, and 0 where nothing ran', async () => {
    const { client, of } = routed(['one']);
    client.send(user('hi'));
    await expect.poll(() => of('result')).toMatchObject([{ subtype: 'success', turns: 1, costUsd: null }]);
    client.send({ type: 'close', conversation: 'a' });
    await expect.poll(() => of('result').length).toBe(2);
    expect(of('result')[1]).toMatchObject({
      subtype: 'success',
      result: '',
      turns: 0,
      costUsd: 0,
      exitReason: 'closed',
    });
  });

  it('a cancel overtakes its run, and the end of the transport stops no run', async () => {
    let goOn = (): void => {};
    const wait = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { agent, client, of, ended } = routed(
      [during(() => new Promise(() => undefined), 'x'), during(() => wait, 'y')],
      {
        multiTurn: true,
      },
    );
    client.send(user('hi'));
    client.send({ type: 'cancel', conversation: 'a', requestId: 'c' });
    await expect.poll(() => of('answer')).toMatchObject([{ requestId: 'c', value: { status: 'idle' } }]);
    client.send(user('again', { requestId: 'm' }));
    await expect.poll(() => of('answer').length).toBe(2);
    client.close();
    await ended;
    expect((await agent.list())[0]?.status).toBe('active');
    goOn();
    await expect.poll(async () => (await agent.list())[0]).toMatchObject({ status: 'idle', lastCause: 'end_turn' });
  });

  it.each([true, false])(
    'a close during a run sends one result, also to a slow reader that the run ends before it, with multiTurn %s',
    async (multiTurn) => {
      let goOn = (): void => {};
      let read = (): void => {};
      const [wait, isRead] = [
        new Promise<void>((resolve) => {
          goOn = resolve;
        }),
        new Promise<void>((resolve) => {
          read = resolve;
        }),
      ];
      const agent = createAgent({ model: scripted([during(() => wait, 'one')]) });
      onTestFinished(() => agent.close());
      const { server, client } = inProcessTransport();
      const types: string[] = [];
      const write = async (message: Outgoing): Promise<void> => {
        types.push(message.type);
        if (message.type === 'system-init') await isRead;
      };
      void route(agent, { ...server, write }, { multiTurn });
      client.send(user('hi', { requestId: 'r1' }));
      await expect.poll(() => types).toEqual(['system-init', 'answer']);
      client.send({ type: 'close', conversation: 'a', requestId: 'r2' });
      await expect.poll(() => types.length).toBe(3);
      goOn();
      await expect.poll(async () => (await agent.list())[0]?.lastCause).toBe('end_turn');
      read();
      await expect.poll(() => types).toContain('result');
      await flush();
      expect(types.filter((type) => type === 'result' || type === 'turn-result')).toEqual(['result']);
      client.close();
    },
  );

  it('its own messages reach a client that was too slow for streamed text', async () => {
    const agent = createAgent({ model: scripted(['hi']) });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('a');
    const feed = new ClientFeed(new Broadcast(conversation), 0, { sizeMax: 100 });
    feed.add({ type: 'turn-result' });
    await conversation.send('go').result;
    const messages: unknown[] = [];
    for (let item = feed.takeNow(); item; item = feed.takeNow()) if ('message' in item) messages.push(item.message);
    expect(messages).toEqual([{ type: 'turn-result' }]);
    feed.close();
  });

  it('a client that was too slow receives streamed text again, each time it has caught up', async () => {
    const agent = createAgent({ model: scripted(['x'.repeat(4_000), 'one', 'y'.repeat(4_000), 'two']) });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('a');
    const feed = new ClientFeed(new Broadcast(conversation), 0, { sizeMax: 2_000 });
    const streamed: string[] = [];
    for (let turn = 0; turn < 4; turn++) {
      await conversation.send('go').result;
      for (let item = feed.takeNow(); item; item = feed.takeNow())
        if ('signal' in item && item.signal.type === 'text-delta') streamed.push(item.signal.text);
    }
    expect(streamed).toEqual(['one', 'two']);
    feed.close();
  });

  it.each([
    [{ type: 'hello' }, 'malformed'],
    [{ type: '__proto__' }, 'malformed'],
    [null, 'malformed'],
    [[], 'malformed'],
    [{ type: 'cancel' }, 'malformed'],
    [{ type: 'cancel', conversation: 'nope' }, 'not_found'],
    [{ type: 'user-message', content: 4 }, 'configuration'],
    [{ type: 'user-message', content: 'x', more: 1 }, 'malformed'],
    [{ type: 'user-message', content: 'x', requestId: 7 }, 'malformed'],
    [{ type: 'list', requestId: 'r'.repeat(201) }, 'malformed'],
  ])('%j is answered with an error, code %s, and creates no conversation', async (message, code) => {
    const { agent, client, outgoing, of } = routed([]);
    client.send(message as Incoming);
    await expect.poll(() => of('error').map((error) => error.code)).toEqual([code]);
    expect([await agent.list(), outgoing.length]).toEqual([[], 1]);
  });
});

describe('JSON lines', () => {
  const bytes = async function* (...texts: string[]) {
    for (const text of texts) yield new TextEncoder().encode(text);
  };

  it('lines may arrive in any pieces; invalid JSON is an error, and the next line counts', async () => {
    const written: string[] = [];
    const output = { write: (text: string) => written.push(text) > 0 };
    const transport = stdioTransport({ input: bytes('{"type":"li', 'st"}\n\nnope\n{"type":', '"list"}'), output });
    const read: unknown[] = [];
    for await (const message of transport.read()) read.push(message);
    expect(read).toEqual([{ type: 'list' }, { type: 'list' }]);
    expect(written.map((line) => (JSON.parse(line) as { code: string }).code)).toEqual(['malformed']);
  });

  it('an overlong line is refused without being buffered, and the next line counts', async () => {
    const written: string[] = [];
    const output = { write: (text: string) => written.push(text) > 0 };
    const long = Array.from({ length: 9 }, () => 'x'.repeat(1_048_576));
    const transport = stdioTransport({ input: bytes(...long, '\n{"type":"list"}\n'), output });
    const read: unknown[] = [];
    for await (const message of transport.read()) read.push(message);
    expect(read.length).toBe(1);
    expect(written.map((line) => (JSON.parse(line) as { code: string }).code)).toEqual(['too_large']);
  });

  it('of many writers to a full output, one line is written after each drain, in order', async () => {
    const written: string[] = [];
    const drains: (() => void)[] = [];
    const output = {
      write: (text: string) => written.push(text) < 0,
      once: (event: string, listener: () => void) => {
        if (event === 'drain') drains.push(listener);
      },
    };
    const transport = stdioTransport({ input: bytes(), output });
    const all = ['a', 'b', 'c'].map((code) => transport.write({ type: 'error', code, message: '' }));
    for (let lines = 1; lines <= 3; lines++) {
      await flush();
      expect(written.length).toBe(lines);
      for (const drain of drains.splice(0)) drain();
    }
    await Promise.all(all);
    expect(written.map((line) => (JSON.parse(line) as { code: string }).code)).toEqual(['a', 'b', 'c']);
  });

  it('a writer to an output that closes while full no longer waits, and neither does a later one', async () => {
    const listeners = new Map<string, () => void>();
    let written = 0;
    const output = {
      write: () => {
        written += 1;
        return false;
      },
      once: (event: string, listener: () => void) => listeners.set(event, listener),
    };
    const transport = stdioTransport({ input: bytes(), output });
    const write = () => transport.write({ type: 'error', code: 'x', message: '' });
    const waiting = [write(), write()];
    await flush();
    expect(written).toBe(1);
    listeners.get('close')?.();
    listeners.clear();
    await Promise.all([...waiting, write()]);
    expect([written, listeners.size]).toEqual([1, 0]);
  });

  it('the router waits for a slow reader: text streamed meanwhile arrives as a whole, and no entry is missing', async () => {
    const written: string[] = [];
    let drain: (() => void) | undefined;
    const output = {
      write: (text: string) => written.push(text) < 0,
      once: (event: string, listener: () => void) => {
        if (event === 'drain') drain = listener;
      },
    };
    const flood = async function* () {
      for (let i = 0; i < 100; i++) yield t('x'.repeat(65_536));
      yield { type: 'finish' as const, reason: 'stop' as const };
    };
    const agent = createAgent({ model: scripted([flood]) });
    const input = bytes('{"type":"user-message","conversation":"a","content":"go"}\n');
    const ended = route(agent, stdioTransport({ input, output }), { drain: true, multiTurn: true });
    await expect.poll(async () => (await agent.list())[0]?.lastCause).toBe('end_turn');
    await flush();
    expect(written.length).toBe(1);
    let over = false;
    void ended.then(() => {
      over = true;
    });
    while (!over) {
      drain?.();
      await flush();
    }
    const outgoing = written.map((line) => JSON.parse(line) as Outgoing);
    const seqs = outgoing.flatMap((each) => (each.type === 'entry' ? [each.entry.seq] : []));
    expect(seqs).toEqual(seqs.map((_, index) => index));
    expect(outgoing.some((each) => each.type === 'entry' && each.entry.type === 'run-stop')).toBe(true);
    expect(outgoing.at(-1)).toMatchObject({ type: 'turn-result' });
    expect(written.join('').length).toBeLessThan(2 * 100 * 65_536 + 2_000_000);
    await agent.close();
  });
});
