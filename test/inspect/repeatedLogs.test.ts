/**
 * The memory of an observer between two uses. A limit of waiting items is no limit of the total, and a position in one log is no position
 * in another log of the same id.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAgent, type LogStore, type Model, memoryStore } from '../../src/index.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { PageConnection } from '../../src/inspect/page.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { readFrame, type ToPage } from '../../src/inspect/wire.ts';
import { scripted } from '../support/scriptedReplies.ts';
import { VirtualClock } from '../support/virtualClock.ts';

function inspectedPage() {
  const clock = new VirtualClock(0, 1);
  const records = new RecordLog(clock.now);
  const observed = new Observed(records);
  const messages: ToPage[] = [];
  const channel = { waiting: 0, send: (text: string) => void messages.push(...readFrame(text)), drop() {} };
  const connection = new PageConnection(channel, {
    ...{ records, observed, session: 's', version: '1', control: false, stallMs: 10_000 },
    ...{ appContext: () => null, now: clock.now, setTimer: clock.setTimer },
  });
  connection.receive(JSON.stringify({ type: 'subscribe', from: 0 }));
  onTestFinished(() => connection.close());
  return { clock, records, observed, messages };
}

/** A conversation of this model, and the page that shows it. */
async function shownConversation(model: Model) {
  const page = inspectedPage();
  const agent = createAgent({ model });
  onTestFinished(() => agent.close());
  const conversation = await agent.open('a');
  page.observed.attach(conversation);
  return { ...page, conversation };
}

describe('a page that reads in time', () => {
  it.each(['text-delta', 'reasoning-delta', 'tool-call-delta'] as const)(
    'it receives each piece of an endless stream of %s once, however much it is in total',
    async (type) => {
      const PIECES = 40;
      const piece = (at: number): string => `${String(at).padStart(3, '0')}${'x'.repeat(20_000)}`;
      let goOn = (): void => {};
      const model: Model = {
        id: 'm',
        async *stream() {
          for (let at = 0; at < PIECES; at++) {
            const text = piece(at);
            yield type === 'tool-call-delta' ? { type, index: 0, name: 'no', text } : { type, text };
            await new Promise<void>((resolve) => {
              goOn = resolve;
            });
          }
          yield { type: 'text-delta', text: 'end' };
          yield { type: 'finish', reason: 'stop' };
        },
      };
      const { clock, messages, conversation } = await shownConversation(model);
      const run = conversation.send('go');
      for (let at = 0; at < PIECES; at++) {
        await clock.advance(200);
        goOn();
      }
      await run.result;
      await clock.advance(200);
      const signals = messages.flatMap((message) => (message.type === 'live' ? [message.signal] : []));
      const ofKind = type === 'tool-call-delta' ? 'tool-input-delta' : type;
      const texts = signals.flatMap((signal) =>
        signal.type === ofKind && 'text' in signal && signal.text !== 'end' ? [signal.text] : [],
      );
      expect(texts.join('').match(/\d{3}/g)).toEqual(Array.from({ length: PIECES }, (_, at) => piece(at).slice(0, 3)));
      expect(signals.filter((signal) => signal.type === 'reset')).toEqual([]);
    },
  );
});

describe('calls that a reply writes at the same time', () => {
  it('are shown with their own arguments', async () => {
    const model: Model = {
      id: 'm',
      async *stream() {
        for (const [index, text] of [
          [0, '{"a":'] as const,
          [1, '{"b":'] as const,
          [0, '1}'] as const,
          [1, '2}'] as const,
        ])
          yield { type: 'tool-call-delta', index, name: `no${index}`, text };
        yield { type: 'text-delta', text: 'end' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const { clock, messages, conversation } = await shownConversation(model);
    await conversation.send('go').result;
    await clock.advance(200);
    const texts = ['', ''];
    for (const message of messages)
      if (message.type === 'live' && message.signal.type === 'tool-input-delta')
        texts[message.signal.index] += message.signal.text;
    expect(texts).toEqual(['{"a":1}', '{"b":2}']);
  });
});

describe('a conversation of an id that was observed before', () => {
  const entriesOf = (records: RecordLog): [id: string, seq: number][] =>
    [...records.since(0)].flatMap((record) =>
      record.type === 'entry' ? [[record.conversation, record.entry.seq] as [string, number]] : [],
    );

  /** Opens the conversation `a`, sends messages, and closes it. Returns the length of its log. */
  async function used(observed: Observed, store: LogStore, at: number, messages: number): Promise<number> {
    const model = scripted(Array(messages).fill('Hello.'));
    const agent = createAgent({ model, store, ports: { now: () => at } });
    const conversation = await agent.open('a');
    observed.attach(conversation);
    for (let sent = 0; sent < messages; sent++) await conversation.send('hi').result;
    const { length } = conversation.log();
    await agent.close();
    return length;
  }
  const seqs = (count: number, from = 0): [string, number][] =>
    Array.from({ length: count - from }, (_, index) => ['a', from + index]);

  it.each([
    [3, 1],
    [1, 3],
    [2, 2],
  ])('another log is recorded from its beginning, after %i messages in the first and %i in it', async (first, then) => {
    const { records, observed } = inspectedPage();
    const before = await used(observed, memoryStore(), 1_000, first);
    const after = await used(observed, memoryStore(), 2_000, then);
    expect(entriesOf(records)).toEqual([...seqs(before), ...seqs(after)]);
  });

  it('the same log continues after its last recorded entry, however often it is opened', async () => {
    const { records, observed } = inspectedPage();
    const store = memoryStore();
    let length = 0;
    for (const messages of [2, 0, 1, 3]) length = await used(observed, store, 1_000, messages);
    expect(entriesOf(records)).toEqual(seqs(length));
  });
});
