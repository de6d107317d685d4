/**
 * Pages that inspect an app over a BroadcastChannel: their resources in the app, and the release of these when they
 * have gone.
 */
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ConfigurationError, createAgent } from '../../src/index.ts';
import { type ChannelInspectorOptions, startChannelInspector } from '../../src/inspect/channelInspector.ts';
import type { ToPage } from '../../src/inspect/wire.ts';
import { scripted } from '../support/scriptedReplies.ts';
import { Subscriptions } from '../support/subscriptions.ts';

afterEach(() => vi.useRealTimers());

/** The time that a page may be silent. */
const GONE_MS = 20_000;

async function inspected() {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  const inspector = startChannelInspector({ channel: 'test' });
  const subscriptions = new Subscriptions();
  const agent = createAgent({ model: scripted([]) });
  const conversation = await agent.open('a');
  subscriptions.watch(conversation);
  inspector.attach(conversation);
  const alone = subscriptions.now;
  const line = new BroadcastChannel('runchart-inspector:test');
  onTestFinished(async () => {
    inspector.close();
    line.close();
    await agent.close();
  });
  const post = (page: string, frame: string): void => line.postMessage({ page, frame });
  const subscribe = (page: string): void => post(page, JSON.stringify({ type: 'subscribe', from: 0 }));
  return { inspector, post, subscribe, held: () => subscriptions.now - alone };
}

describe('an inspector over a channel', () => {
  interface Sent {
    to?: string;
    frame?: string;
    begun?: string;
  }
  /** Messages of the apps on a channel to their pages. */
  function listening(name: string) {
    const line = new BroadcastChannel(`runchart-inspector:${name}`);
    onTestFinished(() => line.close());
    const sent: Sent[] = [];
    line.onmessage = ({ data }) => void sent.push(data as Sent);
    const greetings = () =>
      sent.flatMap(({ to, frame = '[]' }) =>
        (JSON.parse(frame) as ToPage[]).flatMap((message) => (message.type === 'hello' ? [[to, message.control]] : [])),
      );
    const post = (message: unknown): void => line.postMessage(message);
    return { sent, greetings, post, subscribe: (page: string) => post({ page, frame: SUBSCRIBE }) };
  }
  const SUBSCRIBE = JSON.stringify({ type: 'subscribe', from: 0 });
  function started(options?: ChannelInspectorOptions) {
    const inspector = startChannelInspector(options);
    onTestFinished(() => inspector.close());
    return inspector;
  }

  it.each([undefined, false, true])('its pages may act only if control is true: %s', async (control) => {
    started({ channel: 'test', ...(control !== undefined && { control }) });
    const { greetings, subscribe } = listening('test');
    subscribe('p1');
    await expect.poll(greetings).toEqual([['p1', control ?? false]]);
  });

  it('has the name runchart by default, and answers on its own channel alone', async () => {
    expect([started().channel, started({ channel: 'mine' }).channel]).toEqual(['runchart', 'mine']);
    const [usual, mine, other] = ['runchart', 'mine', 'other'].map(listening);
    for (const line of [usual, mine, other]) line?.subscribe('p1');
    await expect.poll(() => [usual, mine].map((line) => line?.greetings().length)).toEqual([1, 1]);
    expect(other?.sent).toEqual([]);
  });

  it('ignores messages that no page of it sends', async () => {
    started({ channel: 'test' });
    const { sent, greetings, post, subscribe } = listening('test');
    for (const message of [null, 5, 'x', {}, { page: 1, frame: SUBSCRIBE }, { page: 'p1' }, { page: 'p1', frame: {} }])
      post(message);
    subscribe('p2');
    await expect.poll(greetings).toEqual([['p2', false]]);
    expect(sent.filter(({ to, begun }) => to !== 'p2' && begun === undefined)).toEqual([]);
  });

  it.each([{ channel: '' }, { channel: 5 }, { control: 'yes' }, { port: 80 }])('refuses the options %j', (options) => {
    expect(() => startChannelInspector(options as never)).toThrow(ConfigurationError);
  });
});

describe('a page of a channel', () => {
  it('after a long silence it holds nothing any more, and may return', async () => {
    const { subscribe, held } = await inspected();
    for (let times = 1; times <= 2; times++) {
      subscribe('p1');
      await expect.poll(held).toBe(1);
      vi.advanceTimersByTime(GONE_MS / 2);
      expect(held()).toBe(1);
      vi.advanceTimersByTime(GONE_MS);
      expect(held()).toBe(0);
    }
  });

  it('stays while it reports its presence and another page leaves', async () => {
    const { subscribe, post, held } = await inspected();
    subscribe('p1');
    subscribe('p2');
    await expect.poll(held).toBe(2);
    vi.advanceTimersByTime(GONE_MS / 2);
    post('p1', '');
    // Messages of a channel keep their order.
    subscribe('p3');
    await expect.poll(held).toBe(3);
    vi.advanceTimersByTime(GONE_MS / 2 + GONE_MS / 4);
    expect(held()).toBe(2);
  });

  it('after a long silence it receives `lost` after each further message, until it subscribes again', async () => {
    const { subscribe, post, held } = await inspected();
    const lost: unknown[] = [];
    const line = new BroadcastChannel('runchart-inspector:test');
    onTestFinished(() => line.close());
    line.onmessage = ({ data }) => void ('lost' in data && lost.push(data.lost));
    subscribe('p1');
    await expect.poll(held).toBe(1);
    vi.advanceTimersByTime(GONE_MS + GONE_MS / 4);
    expect(held()).toBe(0);
    post('p1', '');
    await expect.poll(() => lost).toEqual(['p1']);
    expect(held()).toBe(0);
    subscribe('p2');
    await expect.poll(held).toBe(1);
    post('p2', '');
    post('p1', JSON.stringify({ type: 'context', ask: 1, actor: 'a0' }));
    await expect.poll(() => lost).toEqual(['p1', 'p1']);
  });

  it('it holds nothing of an inspector that is closed, once or twice', async () => {
    const { inspector, subscribe, held } = await inspected();
    subscribe('p1');
    await expect.poll(held).toBe(1);
    for (let times = 1; times <= 2; times++) {
      inspector.close();
      // The inspector itself holds nothing any more either.
      expect(held()).toBeLessThanOrEqual(0);
    }
  });

  it.each([0, 1, 2])('leaves no timer of an inspector that is closed with %i pages', async (pages) => {
    const { inspector, subscribe, held } = await inspected();
    for (let page = 1; page <= pages; page++) subscribe(`p${page}`);
    await expect.poll(held).toBe(pages);
    expect(vi.getTimerCount()).toBe(1);
    inspector.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('receives the begin of each inspector, and its end once, however often it is closed', async () => {
    const line = new BroadcastChannel('runchart-inspector:test');
    onTestFinished(() => line.close());
    const messages: object[] = [];
    line.onmessage = ({ data }) => void messages.push(data);
    for (let inspectors = 1; inspectors <= 2; inspectors++) {
      const inspector = startChannelInspector({ channel: 'test' });
      inspector.close();
      inspector.close();
    }
    // Messages of a channel keep their order: a message after this one was not sent before it.
    const last = new BroadcastChannel('runchart-inspector:test');
    onTestFinished(() => last.close());
    last.postMessage({ last: true });
    await expect.poll(() => messages.at(-1)).toEqual({ last: true });
    const sessions = messages.slice(0, -1).map((message) => Object.entries(message)[0]);
    expect(sessions.map((entry) => entry?.[0])).toEqual(['begun', 'over', 'begun', 'over']);
    const [first, second, third, fourth] = sessions.map((entry) => entry?.[1]);
    expect([first === second, third === fourth, first === third]).toEqual([true, true, false]);
  });
});
