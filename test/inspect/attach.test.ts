/**
 * Repeated use of an inspector: attached again, detached again, closed. Its resources are counted, and all of them are
 * released.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createActor, createMachine } from 'xstate';
import { type Conversation, runtimeOf } from '../../src/conversation/conversation.ts';
import { createAgent } from '../../src/index.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { PageConnection } from '../../src/inspect/page.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { readFrame, type ToPage } from '../../src/inspect/wire.ts';
import { ChartActor } from '../../src/runtime/interpreter/chartActor.ts';
import { scripted } from '../support/scriptedReplies.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const each of open.splice(0).reverse()) await each.close();
});
const interpreters = ['compiled', 'xstate'] as const;

async function opened(interpreter: (typeof interpreters)[number] = 'compiled', inspect?: (event: unknown) => void) {
  const model = scripted(Array(9).fill('Hello.'));
  const agent = createAgent({ model, interpreter, ...(inspect && { inspect }) });
  open.push(agent);
  return agent.open('c');
}
const observing = () => {
  const records = new RecordLog(() => 0);
  const observed = new Observed(records);
  const typesOf = (type: string): number => [...records.since(0)].filter((record) => record.type === type).length;
  return { records, observed, typesOf };
};

/** Counts the unfinished results of a method, which returns a function or a subscription. */
function beginnings<Method extends string>(
  object: { [name in Method]: (...args: never[]) => unknown },
  method: Method,
) {
  const count = { begun: 0, open: 0 };
  const original = object[method].bind(object) as (...args: unknown[]) => unknown;
  const counted = (...args: unknown[]): unknown => {
    const ending = original(...args);
    const name = typeof ending === 'function' ? undefined : 'unsubscribe';
    const end = (name ? (ending as { unsubscribe(): void })[name].bind(ending) : ending) as () => void;
    let isOpen = true;
    count.begun += 1;
    count.open += 1;
    const ended = (): void => {
      if (isOpen) count.open -= 1;
      isOpen = false;
      end();
    };
    return name ? { unsubscribe: ended } : ended;
  };
  Object.defineProperty(object, method, { value: counted, configurable: true });
  return count;
}

/** The observers of an inspector on the chart of a conversation. */
function ofChart(conversation: Conversation) {
  const { root } = runtimeOf(conversation).chart;
  if (root instanceof ChartActor) return beginnings(root.system as never, 'observe' as never);
  return beginnings((root as unknown as { system: never }).system, 'inspect' as never);
}

describe.each(interpreters)('a conversation that is attached twice: %s', (interpreter) => {
  it('it is observed until the second detach, and a repeated detach has no effect', async () => {
    const conversation = await opened(interpreter);
    const { observed, typesOf } = observing();
    const chart = ofChart(conversation);
    const [first, second] = [observed.attach(conversation), observed.attach(conversation)];
    expect([chart.begun, typesOf('conversation')]).toEqual([1, 1]);
    first();
    first();
    first();
    const before = typesOf('entry');
    await conversation.send('Hi').result;
    expect(typesOf('entry')).toBe(conversation.log().length);
    expect(typesOf('entry')).toBeGreaterThan(before);
    expect([chart.open, typesOf('closed')]).toEqual([1, 0]);
    second();
    expect([chart.open, typesOf('closed')]).toEqual([0, 1]);
    const after = typesOf('entry');
    await conversation.send('Again').result;
    expect(typesOf('entry')).toBe(after);
  });

  it('repeated attachments leave one listener of its log, and each entry is recorded once', async () => {
    const conversation = await opened(interpreter);
    const { observed, typesOf } = observing();
    const listens = vi.spyOn(runtimeOf(conversation).log, 'listen');
    const chart = ofChart(conversation);
    for (let time = 0; time < 20; time++) {
      const detach = observed.attach(conversation);
      if (time % 5 === 0) await conversation.send(`Hi ${time}`).result;
      detach();
    }
    expect([chart.begun, chart.open]).toEqual([20, 0]);
    expect(listens).toHaveBeenCalledTimes(1);
    observed.attach(conversation);
    expect(typesOf('entry')).toBe(conversation.log().length);
    observed.close();
    expect(chart.open).toBe(0);
  });
});

describe('a page that is open while a conversation is detached', () => {
  it('receives no text of it afterwards, and each text once when it is attached again', async () => {
    const conversation = await opened();
    const { records, observed } = observing();
    const clock = new VirtualClock();
    const messages: ToPage[] = [];
    const channel = { send: (text: string) => void messages.push(...readFrame(text)), waiting: 0, drop: () => {} };
    const options = { records, observed, session: 's', version: '0', control: false, stallMs: 10_000 };
    const page = new PageConnection(channel, {
      ...options,
      now: clock.now,
      setTimer: clock.setTimer,
      appContext: () => null,
    });
    page.receive('{"type":"subscribe","from":0}');
    const texts = async (): Promise<string[]> => {
      await clock.advance(1000);
      const signals = messages.splice(0).flatMap((message) => (message.type === 'live' ? [message.signal] : []));
      return signals.flatMap((signal) => (signal.type === 'text-delta' ? [signal.text] : []));
    };
    const detach = observed.attach(conversation);
    await conversation.send('Hi').result;
    expect(await texts()).toEqual(['Hello.']);
    detach();
    await conversation.send('Are you still there?').result;
    expect(await texts()).toEqual([]);
    observed.attach(conversation);
    await conversation.send('And now?').result;
    expect(await texts()).toEqual(['Hello.']);
    page.close();
    observed.close();
  });
});

describe('an inspector that is closed', () => {
  it('it leaves nothing: no observer, subscription or timer of its pages and conversations', async () => {
    const { records, observed } = observing();
    const clock = new VirtualClock();
    const timers = { open: 0 };
    const setTimer = (ms: number, fire: () => void): (() => void) => {
      timers.open += 1;
      let isOpen = true;
      const end = (): void => {
        if (isOpen) timers.open -= 1;
        isOpen = false;
      };
      const stop = clock.setTimer(ms, () => {
        end();
        fire();
      });
      return () => {
        end();
        stop();
      };
    };
    const conversation = await opened('compiled', observed.observe);
    const counts = {
      records: beginnings(records as never, 'listen' as never),
      live: beginnings(conversation.live$ as never, 'subscribe' as never),
    };
    const channel = { send: () => {}, waiting: 0, drop: () => {} };
    const options = { records, observed, session: 's', version: '0', control: true, stallMs: 10_000, setTimer };
    const pages = [0, 1].map(() => new PageConnection(channel, { ...options, now: clock.now, appContext: () => null }));
    for (const page of pages) page.receive('{"type":"subscribe","from":0}');
    await conversation.send('Hi').result;
    expect([counts.records.open, counts.live.open]).toEqual([2, 2]);
    expect(timers.open).toBeGreaterThan(0);
    pages[0]?.close();
    expect([counts.records.open, counts.live.open]).toEqual([1, 1]);
    pages[1]?.close();
    pages[1]?.close();
    observed.close();
    expect([counts.records.open, counts.live.open, timers.open]).toEqual([0, 0, 0]);
    await conversation.send('Again').result;
    expect([counts.records.open, counts.live.open, timers.open]).toEqual([0, 0, 0]);
  });

  it('it records nothing more: no later conversation, app or entry', async () => {
    const { records, observed } = observing();
    const machine = createMachine({ id: 'm', initial: 'a', states: { a: { on: { GO: 'b' } }, b: {} } });
    const app = createActor(machine, { inspect: observed.observe }).start();
    observed.close();
    const { next } = records;
    app.send({ type: 'GO' });
    const conversation = await opened('compiled', observed.observe);
    const chart = ofChart(conversation);
    observed.attach(conversation)();
    await conversation.send('Hi').result;
    createActor(machine, { inspect: observed.observe }).start().stop();
    app.stop();
    expect([records.next, chart.begun]).toEqual([next, 0]);
  });
});
