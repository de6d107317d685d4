/** Service for slow pages: waiting data is limited, and only a page that reads nothing for long is disconnected. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createActor, createMachine } from 'xstate';
import * as z from 'zod';
import { createAgent, defineTool } from '../../src/index.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { PageConnection } from '../../src/inspect/page.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { FRAME_MAX, readFrame } from '../../src/inspect/wire.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const STALL_MS = 10_000;
/** More than the limit of unread data of a page. */
const FULL = 2 * 1024 * 1024;

function page(records?: RecordLog) {
  const clock = new VirtualClock(0, 1);
  return { clock, ...connected(clock, records ?? new RecordLog(clock.now)) };
}

function connected(clock: VirtualClock, records: RecordLog) {
  const observed = new Observed(records);
  const channel = { waiting: 0, frames: [] as string[], isDropped: false };
  const connection = new PageConnection(
    {
      send: (text) => void channel.frames.push(text),
      get waiting() {
        return channel.waiting;
      },
      drop: () => {
        channel.isDropped = true;
      },
    },
    {
      ...{ records, observed, session: 's', version: '1', control: false, stallMs: STALL_MS },
      ...{ appContext: () => null, now: clock.now, setTimer: clock.setTimer },
    },
  );
  const add = (): void => records.add({ type: 'conversation', conversation: `c${records.next}`, of: 'file' });
  connection.receive(JSON.stringify({ type: 'subscribe', from: 0 }));
  const shown = (): number => channel.frames.join('').split('"type":"conversation"').length - 1;
  return { records, observed, channel, connection, add, shown };
}

describe('the read limit of a page', () => {
  it('disconnects a page that reads nothing, and leaves no timer', async () => {
    const { clock, channel, add } = page();
    channel.waiting = FULL;
    add();
    await clock.advance(STALL_MS - 1_000);
    expect(channel.isDropped).toBe(false);
    await clock.advance(2_000);
    expect([channel.isDropped, clock.waiting]).toEqual([true, 0]);
  });

  it('never disconnects a page that reads at shorter intervals, which misses nothing', async () => {
    const { clock, channel, add, shown, connection } = page();
    for (let time = 1; time <= 4; time++) {
      channel.waiting = FULL;
      add();
      await clock.advance(STALL_MS - 1_000);
      expect([channel.isDropped, shown()]).toEqual([false, time - 1]);
      channel.waiting = 0;
      await clock.advance(1_000);
      expect(shown()).toBe(time);
    }
    connection.close();
    expect(clock.waiting).toBe(0);
  });
});

describe('a page that connects late', () => {
  it('is informed once of the records that are no longer kept, however many frames the others take', async () => {
    const records = new RecordLog(() => 0, { moves: 10, events: 5, rest: 10_000 });
    const text = 'x'.repeat(1000);
    for (let seq = 0; seq < 2000; seq++) {
      records.event('a0', undefined, { type: 'moved' }, (event) => event);
      records.entry('c', { seq, at: 0, conversationId: 'c', runId: null, type: 'renamed', title: text });
    }
    const { clock, channel, connection } = page(records);
    await clock.advance(1_000);
    connection.close();
    const messages = channel.frames.flatMap(readFrame);
    expect(messages.filter((message) => 'n' in message)).toHaveLength(2010);
    expect(messages.flatMap((message) => (message.type === 'hello' ? [message.dropped] : []))).toEqual([1990]);
    expect(messages.filter(({ type }) => type === 'dropped')).toEqual([]);
  });
});

describe('a page that was too slow for streamed text', () => {
  it('it receives the rest of it, each piece once, however often that happens', async () => {
    const { clock, channel, observed, connection } = page();
    const flood = 'x'.repeat(300_000);
    const agent = createAgent({ model: scripted([flood, flood, 'once']) });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('a');
    observed.attach(conversation);
    for (const streamed of ['flood', 'flood', 'once']) {
      channel.waiting = FULL;
      await conversation.send('go').result;
      await clock.advance(1_000);
      if (streamed === 'flood') channel.waiting = 0;
      else {
        channel.frames.length = 0;
        channel.waiting = 0;
      }
      await clock.advance(1_000);
    }
    const deltas = channel.frames
      .flatMap((frame) => JSON.parse(frame) as { type: string; signal?: { type: string; text: string } }[])
      .filter(({ signal }) => signal?.type === 'text-delta');
    expect(deltas.map(({ signal }) => signal?.text)).toEqual(['once']);
    connection.close();
  });
});

describe('progress of several calls that comes at once', () => {
  it.each([1, 2, 5])(
    'is shown of each of %i calls, the newest of it, and none replaces that of another',
    async (count) => {
      const { clock, channel, observed, connection } = page();
      const ids = Array.from({ length: count }, (_, at) => `c${at}`);
      const work = defineTool({
        name: 'work',
        description: 'Works',
        parameters: z.object({}),
        async execute(_, { progress, sleep }) {
          for (const part of [1, 2, 3]) progress(part);
          await sleep(1);
        },
      });
      const agent = createAgent({ model: scripted([ids.map((id) => call(id, 'work')), 'done']), tools: [work] });
      onTestFinished(() => agent.close());
      const conversation = await agent.open('a');
      observed.attach(conversation);
      await conversation.send('go').result;
      await clock.advance(1_000);
      connection.close();
      const messages = channel.frames.flatMap(readFrame);
      const updates = ids.map((id) =>
        messages.flatMap((message) => {
          const signal = message.type === 'live' ? message.signal : undefined;
          return signal?.type === 'tool-progress' && signal.callId === id ? [signal.update] : [];
        }),
      );
      expect(updates.map((each) => each.at(-1))).toEqual(ids.map(() => 'ended'));
      // The news of the last call may have been replaced by its own end.
      expect(updates.slice(0, -1).map((each) => each.includes(3))).toEqual(ids.slice(1).map(() => true));
    },
  );
});

describe('the answers to a page', () => {
  const asked = (channel: { frames: string[] }) =>
    channel.frames.flatMap(readFrame).filter((message) => 'ask' in message);

  it('are refused while it reads nothing, so that they take no memory', () => {
    const { channel, connection } = page();
    channel.frames.length = 0;
    channel.waiting = FULL;
    connection.receive(JSON.stringify({ type: 'context', ask: 1, actor: 'a0' }));
    connection.receive(JSON.stringify({ type: 'payload', ask: 2, n: 0 }));
    expect(asked(channel)).toMatchObject([
      { type: 'refused', ask: 1, code: 'limit' },
      { type: 'refused', ask: 2, code: 'limit' },
    ]);
    channel.waiting = 0;
    connection.receive(JSON.stringify({ type: 'context', ask: 3, actor: 'a0' }));
    expect(asked(channel).at(-1)).toMatchObject({ type: 'answer', ask: 3 });
    connection.close();
  });

  it('fit a frame, also with a context of many megabytes', () => {
    const { channel, observed, connection } = page();
    const context = { rows: Array.from({ length: 200 }, () => Array.from({ length: 20 }, () => 'x'.repeat(4000))) };
    const actor = createActor(createMachine({ id: 'big', context }), { inspect: observed.observe }).start();
    connection.receive(JSON.stringify({ type: 'context', ask: 1, actor: 'a0' }));
    const [answer] = asked(channel);
    expect(JSON.stringify(answer).length).toBeLessThan(FRAME_MAX);
    expect(answer).toMatchObject({ type: 'answer', value: { rows: expect.any(Array) } });
    actor.stop();
    connection.close();
  });
});
