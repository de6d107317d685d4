/**
 * Tests several agents over one PostgreSQL as if each were a process, with handlers of its own. A request may reach any of them.
 * Invariant: a conversation has one holder, and nothing is done twice.
 */
import { afterEach, describe, expect, test } from 'vitest';
import * as z from 'zod';
import {
  type Agent,
  type AgentOptions,
  createAgent,
  defineTool,
  type LogEntry,
  type Model,
} from '../../../src/index.ts';
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { timeOf, withTime } from '../../../src/stores/postgres/storeTime.ts';
import { createHandlers, type HandlerOptions } from '../../../src/transports/index.ts';
import { emptySchema, pglitePool } from '../../support/pglitePool.ts';
import { call, finish, scripted } from '../../support/scriptedReplies.ts';

const SCHEMA = 'agents';
interface Process {
  agent: Agent;
  store: PostgresStore;
  ask(method: string, path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }>;
  events(path: string): Promise<ReadableStreamDefaultReader<string>>;
}
describe('agents over one database', () => {
  const processes: Process[] = [];
  afterEach(async () => {
    for (const { agent, store } of processes.splice(0)) {
      await agent.close().catch(() => undefined);
      await store.close().catch(() => undefined);
    }
    stalledMs = 0;
    await emptySchema(SCHEMA);
  });

  /** The offset of the processes' clock after a stall that the timers of their leases have not noticed. */
  let stalledMs = 0;
  function processOf(
    model: Model,
    options: Partial<AgentOptions> = {},
    handling: Partial<HandlerOptions> = {},
  ): Process {
    const time = { ...timeOf(pglitePool()), now: () => performance.now() + stalledMs };
    const store = postgresStore(withTime(pglitePool(), time), { schema: SCHEMA });
    const agent = createAgent({ model, store, ...options });
    const handler = createHandlers(agent, { authorize: () => true, ...handling });
    const request = (method: string, path: string, body?: object): Promise<Response> =>
      handler(
        new Request(`http://here/conversations${path}`, {
          method,
          ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
        }),
      );
    const made: Process = {
      agent,
      store,
      async ask(method, path, body) {
        const response = await request(method, path, body);
        const text = await response.text();
        return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
      },
      async events(path) {
        const response = await request('GET', path);
        if (!response.body) throw new Error(`${response.status}`);
        return response.body
          .pipeThrough(new TextDecoderStream() as never)
          .getReader() as ReadableStreamDefaultReader<string>;
      },
    };
    processes.push(made);
    return made;
  }

  test('a process that has stalled for a lease answers no request from what it has', async () => {
    const [old, next] = [processOf(scripted(['Hello.'])), processOf(scripted(['Hello again.']))];
    await old.ask('POST', '', { id: 'c' });
    await pglitePool().query(`update "${SCHEMA}".conversations set lease_until = clock_timestamp()`);
    expect((await next.ask('POST', '/c/messages', { content: 'Hi', messageId: 'm' })).status).toBe(202);
    await expect.poll(async () => (await next.ask('GET', '/c')).body.status).toBe('idle');
    const { body } = await next.ask('GET', '/c');
    stalledMs = 15_000;
    expect((await old.ask('GET', '/c')).body).toEqual(body);
    const reader = await old.events(`/c/events?lastEventId=${Number(body.entries) - 2}`);
    const { entries } = await read(reader, (all) => all.length === 1);
    expect(entries.map(({ type }) => type)).toEqual(['checkpoint']);
  });

  /** Reads server-sent events until `isEnough` accepts them, or until the stream ends. */
  async function read(reader: ReadableStreamDefaultReader<string>, isEnough: (entries: LogEntry[]) => boolean) {
    let text = '';
    const entries: LogEntry[] = [];
    let live = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { entries, live, isEnded: true };
      text += value;
      const frames = text.split('\n\n');
      text = frames.pop() ?? '';
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (data === undefined) continue;
        if (frame.includes('event: entry')) entries.push(JSON.parse(data));
        else live += JSON.parse(data).text ?? '';
      }
      if (isEnough(entries)) {
        await reader.cancel();
        return { entries, live, isEnded: false };
      }
    }
  }
  const isStopped = (entries: readonly LogEntry[]): boolean =>
    entries.at(-1)?.type === 'checkpoint' && entries.some(({ type }) => type === 'run-stop');

  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    needsApproval: true,
    execute: () => 'paid',
  });
  const endLeases = (): Promise<unknown> =>
    pglitePool().query(`update "${SCHEMA}".conversations set lease_until = clock_timestamp() - interval '1 second'`);
  const typesOf = (entries: readonly LogEntry[], type: LogEntry['type']): LogEntry[] =>
    entries.filter((entry) => entry.type === type);

  describe('a request about a conversation that another process holds', () => {
    test('is carried out by the holder: messages, events, the view, a list, a deletion', async () => {
      const [one, two] = [processOf(scripted(['Hello.', 'Again.'])), processOf(scripted(['from the wrong process']))];
      expect(await one.ask('POST', '', { id: 'c' })).toMatchObject({ status: 201 });
      expect(await two.ask('POST', '', { id: 'c' })).toMatchObject({ status: 200, body: { id: 'c', status: 'idle' } });
      const events = await two.events('/c/events');
      const sent = await two.ask('POST', '/c/messages', { content: 'Hi', messageId: 'm1' });
      expect(sent).toMatchObject({ status: 202, body: { messageId: 'm1' } });
      const { entries } = await read(events, isStopped);
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
      expect(await two.ask('POST', '/c/messages', { content: 'Hi', messageId: 'm1' })).toEqual(sent);
      const shown = (await one.ask('GET', '/c')).body;
      expect((await two.ask('GET', '/c')).body).toEqual(shown);
      expect(JSON.stringify(shown.view)).toContain('Hello.');
      expect(typesOf(entries, 'user-message')).toHaveLength(1);
      expect((await two.ask('DELETE', '/c')).status).toBe(204);
      expect([(await one.ask('GET', '/c')).status, (await two.ask('GET', '/c')).status]).toEqual([404, 404]);
    });

    test('decides and resumes, and a second decision gets the receipt duplicate', async () => {
      const replies = [[call('c1', 'pay'), finish('tool-calls')], 'Paid.'] as const;
      const [one, two] = [processOf(scripted(replies), { tools: [pay] }), processOf(scripted([]), { tools: [pay] })];
      await one.ask('POST', '', { id: 'c' });
      await two.ask('POST', '/c/messages', { content: 'Pay the rent.' });
      await expect.poll(async () => (await two.ask('GET', '/c')).body.status, { interval: 200 }).toBe('waiting');
      const decision = { callId: 'c1', action: 'approve' };
      expect((await two.ask('POST', '/c/decisions', decision)).body).toEqual({ receipt: 'applied' });
      expect((await two.ask('POST', '/c/decisions', decision)).body).toEqual({ receipt: 'duplicate' });
      expect(await two.ask('POST', '/c/decisions', { callId: 'c1' })).toMatchObject({ status: 400 });
      expect((await two.ask('POST', '/c/resume')).status).toBe(202);
      await expect.poll(async () => (await two.ask('GET', '/c')).body.status, { interval: 200 }).toBe('idle');
      expect(JSON.stringify((await one.ask('GET', '/c')).body.view)).toContain('Paid.');
    });

    test('cancels what runs there', async () => {
      const silent: Model = {
        id: 'silent',
        async *stream(_, { signal }) {
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
      };
      const [one, two] = [processOf(silent), processOf(silent)];
      await one.ask('POST', '', { id: 'c' });
      await two.ask('POST', '/c/messages', { content: 'Hi' });
      expect((await two.ask('POST', '/c/steer', { content: 'Faster.' })).status).toBe(202);
      expect(await two.ask('POST', '/c/cancel')).toEqual({ status: 200, body: { status: 'idle' } });
      expect((await one.ask('GET', '/c')).body.status).toBe('idle');
    });

    test("finds no other owner's conversation", async () => {
      const authorize = (): { by: string; owner: string } => ({ by: 'ann', owner: 'ann' });
      const one = processOf(scripted([]));
      const two = processOf(scripted([]), {}, { authorize });
      await one.agent.open('c', { owner: 'bob' });
      for (const [method, path] of [
        ['GET', '/c'],
        ['GET', '/c/events'],
        ['POST', '/c/cancel'],
        ['DELETE', '/c'],
      ] as const)
        expect(await two.ask(method, path)).toMatchObject({ status: 404 });
    });
  });

  describe('a holder that is gone', () => {
    test('is replaced by the process of the next request, which has every entry', async () => {
      const [one, two] = [processOf(scripted(['Hello.'])), processOf(scripted(['Hello again.']))];
      await one.ask('POST', '', { id: 'c' });
      await one.ask('POST', '/c/messages', { content: 'Hi' });
      await expect.poll(async () => (await one.ask('GET', '/c')).body.status, { interval: 200 }).toBe('idle');
      await endLeases();
      expect((await two.ask('POST', '/c/messages', { content: 'Hi again' })).status).toBe(202);
      await expect
        .poll(async () => JSON.stringify((await two.ask('GET', '/c')).body), { interval: 200 })
        .toContain('Hello again.');
      // The old holder has closed the conversation, and asks the new one.
      await expect
        .poll(async () => JSON.stringify((await one.ask('GET', '/c')).body), { interval: 200 })
        .toContain('Hello again.');
    });

    test('is replaced in the middle of a run by a process with a reader, which ends the run or resumes it', async () => {
      const silent: Model = { id: 'silent', stream: () => new ReadableStream() as never };
      const [one, two] = [processOf(silent), processOf(scripted(['Resumed.']), { policies: { onRestart: 'resume' } })];
      await one.ask('POST', '', { id: 'c' });
      await one.ask('POST', '/c/messages', { content: 'Hi' });
      const reader = await two.events('/c/events');
      await reader.read();
      await endLeases();
      // The same stream continues with the entries of the new holder.
      const { live } = await read(reader, (all) => typesOf(all, 'run-stop').length === 2);
      expect(live).toBe('Resumed.');
      expect(JSON.stringify((await two.ask('GET', '/c')).body)).toContain('Resumed.');
      const { entries } = await read(await two.events('/c/events'), (all) => typesOf(all, 'run-stop').length === 2);
      expect(typesOf(entries, 'user-message')).toHaveLength(1);
    });
  });
});
