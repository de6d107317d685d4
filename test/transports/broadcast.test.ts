/**
 * The items of a conversation for many readers. Invariant: every reader receives every entry once and in order, and the text that it adds
 * up is the streamed text, however slowly it reads. Frames are encoded once.
 */
import fc from 'fast-check';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Conversation, createAgent, type Live, type LogEntry } from '../../src/index.ts';
import { Broadcast } from '../../src/transports/events/broadcast.ts';
import { ClientFeed } from '../../src/transports/events/clientFeed.ts';
import { createHandlers } from '../../src/transports/index.ts';
import { call, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { volume } from '../support/tier.ts';
import { flush } from '../support/virtualClock.ts';

const finish = { type: 'finish' as const, reason: 'stop' as const };

async function opened(replies: readonly Reply[]): Promise<Conversation> {
  const agent = createAgent({ model: scripted(replies) });
  onTestFinished(() => agent.close());
  return agent.open('a');
}

type Frame = { id?: string; event: string; data: string };

function framesIn(bytes: readonly Uint8Array[]): Frame[] {
  const text = new TextDecoder().decode(Buffer.concat(bytes));
  return text
    .split('\n\n')
    .filter((block) => block.startsWith('id:') || block.startsWith('event:'))
    .map((block) => Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/).slice(0, 2))) as Frame);
}

/** The state of a client: its entries, and the streamed text of the current reply. */
function clientOf(frames: readonly Frame[]) {
  const entries: LogEntry[] = [];
  let text = '';
  let resets = 0;
  for (const { event, data } of frames) {
    if (event === 'entry') entries.push(JSON.parse(data) as LogEntry);
    else {
      const signal = JSON.parse(data) as Live;
      if (signal.type === 'reset') {
        text = '';
        resets += 1;
      }
      if (signal.type === 'text-delta') text += signal.text;
    }
  }
  return { entries, text, resets };
}

it('a reader at any place, of any speed and after any reconnection has every entry once, in order, and the text', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ pause: fc.nat(6), leaves: fc.nat(12), from: fc.boolean() }), { minLength: 1, maxLength: 5 }),
      fc.array(fc.string({ minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 30 }),
      fc.constantFrom(200, 1_000, 1_000_000),
      async (readers, texts, sizeMax) => {
        const conversation = await opened([
          async function* () {
            for (const text of texts) {
              yield t(text);
              if (text.length % 3 === 0) await flush(1);
            }
            yield call('c1', 'nope');
            yield { type: 'finish' as const, reason: 'tool-calls' as const };
          },
          'done',
        ]);
        const broadcast = new Broadcast(conversation);
        const clients = readers.map(({ pause, leaves, from }) => {
          let feed = new ClientFeed(broadcast, 0, { sizeMax });
          const bytes: Uint8Array[] = [];
          let turn = 0;
          let taken = 0;
          const read = (): void => {
            turn += 1;
            if (turn % (pause + 1) !== 0) return;
            const frames = feed.takeFrames();
            if (!frames) return;
            bytes.push(frames.bytes);
            taken += 1;
            if (leaves === 0 || taken % leaves !== 0) return;
            feed.close();
            feed = new ClientFeed(broadcast, clientOf(framesIn(bytes)).entries.length, { sizeMax });
          };
          if (from) read();
          const rest = (): void => {
            for (let frames = feed.takeFrames(); frames; frames = feed.takeFrames()) bytes.push(frames.bytes);
          };
          return { read, rest, bytes, close: () => feed.close() };
        });
        const run = conversation.send('go');
        let isOver = false;
        void run.result.then(() => {
          isOver = true;
        });
        while (!isOver) {
          await flush(1);
          for (const { read } of clients) read();
        }
        await flush();
        for (const [index, { rest, bytes, close }] of clients.entries()) {
          rest();
          const { entries, text } = clientOf(framesIn(bytes));
          expect(entries).toEqual(conversation.log());
          // Streamed text that a slow reader lost is in the entry of the reply.
          if (sizeMax === 1_000_000 && readers[index]?.leaves === 0) expect(text).toBe(`${texts.join('')}done`);
          close();
        }
        expect(broadcast.hasReaders).toBe(false);
        await conversation.close();
      },
    ),
    { numRuns: volume.readers },
  );
});

it('readers that joined at any length of the log share its frames, and each has every entry once', async () => {
  for (const length of [10, 3_000, 20_000]) {
    const conversation = await opened(Array.from({ length: 5 }, () => 'x'.repeat(length)));
    const broadcast = new Broadcast(conversation);
    const join = () => new ClientFeed(broadcast, 0, { sizeMax: 1_000_000 });
    const feeds = [join()];
    for (let count = 0; count < 5; count += 1) {
      await conversation.send('go').result;
      feeds.push(join());
    }
    // Frames that a later reader has made may reach beyond the place where an earlier one joined.
    for (const feed of feeds.reverse()) {
      const bytes: Uint8Array[] = [];
      for (let frames = feed.takeFrames(); frames; frames = feed.takeFrames()) bytes.push(frames.bytes);
      expect(clientOf(framesIn(bytes)).entries.map(({ seq }) => seq)).toEqual(conversation.log().map(({ seq }) => seq));
      feed.close();
    }
  }
});

it('streamed text never comes after the entry of its reply, wherever a reader joined and however long it then read nothing', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ joins: fc.nat(8), reads: fc.nat(3), waits: fc.nat(12) }), { minLength: 1, maxLength: 6 }),
      fc.constantFrom(100, 1_000_000),
      async (readers, sizeMax) => {
        const pieces = Array.from({ length: 8 }, (_, index) => `<${index}>${'x'.repeat(30)}`);
        const conversation = await opened([
          async function* () {
            for (const piece of pieces) {
              yield t(piece);
              await flush(1);
            }
            yield finish;
          },
        ]);
        const broadcast = new Broadcast(conversation);
        const clients = readers.map((reader) => ({ ...reader, bytes: [] as Uint8Array[] }));
        const feeds = new Map<object, ClientFeed>();
        const run = conversation.send('go');
        for (let turn = 0; turn < 24; turn += 1) {
          await flush(1);
          for (const client of clients) {
            const { joins, reads, waits, bytes } = client;
            if (turn === joins) feeds.set(client, new ClientFeed(broadcast, 0, { sizeMax }));
            if (turn >= joins && (turn < joins + reads || turn > joins + reads + waits)) {
              const frames = feeds.get(client)?.takeFrames();
              if (frames) bytes.push(frames.bytes);
            }
          }
        }
        await run.result;
        await flush();
        for (const client of clients) {
          const feed = feeds.get(client);
          for (let frames = feed?.takeFrames(); frames; frames = feed?.takeFrames()) client.bytes.push(frames.bytes);
          feed?.close();
          const frames = framesIn(client.bytes);
          const reply = frames.findIndex(({ data }) => data.includes('"type":"model-reply"'));
          expect(reply).toBeGreaterThan(0);
          expect(frames.slice(reply).filter(({ data }) => data.includes('"type":"text-delta"'))).toEqual([]);
        }
        await conversation.close();
      },
    ),
    { numRuns: volume.readers },
  );
});

it('readers at one place share the same bytes, and each entry is serialized once', async () => {
  const conversation = await opened([[t('one '), t('two')]]);
  const broadcast = new Broadcast(conversation);
  const feeds = Array.from({ length: 50 }, () => new ClientFeed(broadcast, 1, { sizeMax: 1_000_000 }));
  const stringify = vi.spyOn(JSON, 'stringify');
  onTestFinished(() => stringify.mockRestore());
  await conversation.send('go').result;
  await flush();
  stringify.mockClear();
  const taken = feeds.map((feed) => {
    const bytes: Uint8Array[] = [];
    for (let frames = feed.takeFrames(); frames; frames = feed.takeFrames()) bytes.push(frames.bytes);
    return bytes;
  });
  expect(stringify.mock.calls.length).toBeLessThan(20);
  for (const bytes of taken) expect(bytes.every((each, index) => each === taken[0]?.[index])).toBe(true);
});

it('a delta costs the same beside a log of any length: the log is never copied', async () => {
  const conversation = await opened([Array.from({ length: 300 }, (_, index) => t(`${index} `))]);
  const log = vi.spyOn(conversation, 'log');
  const feed = new ClientFeed(new Broadcast(conversation), 0, { sizeMax: 1_000_000 });
  await conversation.send('go').result;
  while (feed.takeNow());
  expect(log).not.toHaveBeenCalled();
});

it('a model that streams 20,000 pieces in one turn of the loop disconnects no reader, and all receive the text', async () => {
  const pieces = Array.from({ length: 20_000 }, (_, index) => `piece ${index} `);
  const agent = createAgent({ model: scripted([[...pieces.map(t), finish]]) });
  onTestFinished(() => agent.close());
  const conversation = await agent.open('a');
  const facts: object[] = [];
  const shared = { acquire: async () => conversation, release: () => {}, close: async () => {} };
  const handler = createHandlers(agent, {
    authorize: () => true,
    sessions: shared,
    logger: { debug: (fact) => void facts.push(fact) },
  });
  const read = async (): Promise<Frame[]> =>
    framesIn([new Uint8Array(await (await handler(new Request('http://h/conversations/a/events'))).arrayBuffer())]);
  const readers = Array.from({ length: 5 }, read);
  await flush();
  await conversation.send('go').result;
  await flush();
  await conversation.close();
  for (const frames of await Promise.all(readers)) {
    const { entries, text } = clientOf(frames);
    expect(text).toBe(pieces.join(''));
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
    expect(entries.at(-1)).toMatchObject({ type: 'checkpoint' });
  }
  expect(facts).toEqual([]);
});
