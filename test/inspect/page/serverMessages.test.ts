/** The messages of an inspector's server, and the display of the page after each. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ToPage } from '../../../src/inspect/wire.ts';
import { conversationEntry, logOf, pageBench } from './pageBench.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function connectedPage() {
  const page = await pageBench();
  const { ask } = await import('../../../inspector/state/serverConnection.ts');
  page.server.greet();
  page.server.conversation('a', 'active');
  return { ...page, ask, streamed: () => page.conversations.value.get('a')?.inFlight };
}
type Signal = Extract<ToPage, { type: 'live' }>['signal'];
const live = (...signals: Signal[]): ToPage[] => signals.map((signal) => ({ type: 'live', conversation: 'a', signal }));
const runId = 'run';

describe('the text of a reply that streams', () => {
  it('grows by each part, apart from the reasoning, and begins again after a reset', async () => {
    const { server, streamed } = await connectedPage();
    server.say(...live({ type: 'text-delta', runId, text: 'Hel' }, { type: 'reasoning-delta', runId, text: 'hm' }));
    server.say(...live({ type: 'text-delta', runId, text: 'lo' }));
    expect(streamed()).toEqual({ text: 'Hello', reasoning: 'hm' });
    server.say(...live({ type: 'reset', runId }));
    expect(streamed()).toBeUndefined();
    server.say(...live({ type: 'text-delta', runId, text: 'Again' }));
    expect(streamed()).toEqual({ text: 'Again', reasoning: '' });
  });

  it.each(['agent-output', 'model-reply'])('ends with the entry %s, and not with another', async (type) => {
    const { server, streamed } = await connectedPage();
    server.say(...live({ type: 'text-delta', runId, text: 'Hello' }));
    const item = { type: 'text', text: 'Hello' };
    const log = logOf('a', [conversationEntry, { type: 'run-started' }, { type, item } as never]);
    server.entries('a', log.slice(0, 2));
    expect(streamed()).toMatchObject({ text: 'Hello' });
    server.entries('a', log.slice(2));
    expect(streamed()).toBeUndefined();
  });

  it('leaves out the text of sub-agents, which have conversations of their own', async () => {
    const { server, streamed } = await connectedPage();
    server.say(...live({ type: 'text-delta', runId, text: 'Hello', path: ['call_1'] } as Signal));
    expect(streamed()).toBeUndefined();
    server.say(...live({ type: 'text-delta', runId, text: 'Hello', path: [] } as Signal));
    expect(streamed()).toMatchObject({ text: 'Hello' });
  });
});

describe('records that are missing', () => {
  it('are counted together, and those that were passed over do not come again', async () => {
    const { server, announcement, conversations } = await connectedPage();
    server.say({ type: 'dropped', from: 2, count: 3 });
    expect(announcement.value).toBe('3 records came faster than they could be shown');
    server.say({ type: 'dropped', from: 5, count: 2 });
    expect(announcement.value).toBe('5 records came faster than they could be shown');
    server.say({ n: 6, at: 0, type: 'status', conversation: 'a', status: 'error' });
    expect(conversations.value.get('a')?.status).toBe('active');
    server.say({ n: 7, at: 0, type: 'status', conversation: 'a', status: 'idle' });
    expect(conversations.value.get('a')?.status).toBe('idle');
  });

  it('from before the page was open are announced when it connects', async () => {
    const { server, announcement } = await pageBench();
    server.greet();
    expect(announcement.value).toBe('');
    server.say({ ...hello, dropped: 4 });
    expect(announcement.value).toBe('4 earlier records are no longer kept');
  });
});

const hello = { type: 'hello', wire: 1, version: '0', session: 's', control: true, from: 0, next: 0 } as const;

describe('a conversation of the server', () => {
  it('is gone when the server closes it', async () => {
    const { server, conversations } = await connectedPage();
    server.say({ n: 2, at: 0, type: 'closed', conversation: 'a' });
    expect(conversations.value.get('a')).toMatchObject({ status: 'gone', source: 'live' });
  });

  it('of a file has the lines that could not be read', async () => {
    const { server, conversations } = await connectedPage();
    server.say({ n: 2, at: 0, type: 'conversation', conversation: 'b.jsonl', of: 'file', unread: ['it is no JSON'] });
    expect(conversations.value.get('b.jsonl')).toMatchObject({
      ...{ source: 'file', of: 'runchart' },
      broken: [{ line: 0, why: 'it is no JSON', entriesBefore: 0 }],
    });
  });

  it('of an app, or of a sub-agent, is marked as such', async () => {
    const { server, conversations } = await connectedPage();
    const parent = { conversation: 'a', callId: 'call_1' };
    server.say(
      { n: 2, at: 0, type: 'conversation', conversation: 'app', of: 'xstate', takesEvents: true },
      { n: 3, at: 0, type: 'conversation', conversation: 'sub', of: 'runchart', parent },
    );
    expect(conversations.value.get('app')).toMatchObject({ of: 'xstate', takesEvents: true });
    expect(conversations.value.get('sub')).toMatchObject({ of: 'runchart', parent });
    expect(conversations.value.get('sub')).not.toHaveProperty('takesEvents');
  });
});

describe('a request of the page', () => {
  it('has the answer with its own number, whatever comes first', async () => {
    const { server, ask } = await connectedPage();
    server.take();
    const asked = [1, 2, 3].map((n) => ask({ type: 'payload', n }));
    const [first, second, third] = server.take().map((request) => request.ask);
    server.say({ type: 'refused', ask: second as number, code: 'closed', message: 'it is closed' });
    server.say({ type: 'answer', ask: 99, value: 'of nobody' }, { type: 'answer', ask: third as number, value: 3 });
    server.say({ type: 'answer', ask: first as number, value: 1 });
    await expect(Promise.allSettled(asked)).resolves.toMatchObject([
      { value: 1 },
      { reason: { message: 'it is closed' } },
      { value: 3 },
    ]);
  });

  it('is refused before the page is connected, and when the connection is lost', async () => {
    const { server } = await pageBench();
    const { ask } = await import('../../../inspector/state/serverConnection.ts');
    await expect(ask({ type: 'payload', n: 1 })).rejects.toThrow('not connected');
    server.greet();
    const asked = ask({ type: 'payload', n: 1 });
    server.drop();
    await expect(asked).rejects.toThrow('the connection was lost');
    await expect(ask({ type: 'payload', n: 1 })).rejects.toThrow('not connected');
  });
});

describe('a connection that is lost', () => {
  it('is tried again after waits that double up to 4 s, and soon again after it was open', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { server, connection } = await pageBench();
    server.greet();
    const waits: number[] = [];
    const waitForDial = (): void => {
      const { dials } = server;
      server.drop();
      let waited = 0;
      for (; server.dials === dials; waited += 50) vi.advanceTimersByTime(50);
      waits.push(waited);
    };
    for (let times = 0; times < 7; times++) waitForDial();
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 4000, 4000]);
    server.greet();
    waitForDial();
    expect(waits.at(-1)).toBe(250);
    expect(connection.value).toMatchObject({ state: 'lost', control: true, host: 'test' });
  });
});

describe('messages that are applied together', () => {
  it('of two servers leave nothing of the first one', async () => {
    const { server, conversations } = await connectedPage();
    const draws: (() => void)[] = [];
    vi.stubGlobal('requestAnimationFrame', (draw: () => void) => void draws.push(draw));
    server.entries('a', logOf('a', [conversationEntry, { type: 'run-started' }]));
    server.drop();
    server.greet('another', 0, 1);
    server.say({ n: 0, at: 0, type: 'conversation', conversation: 'b', of: 'runchart' });
    for (const draw of draws.splice(0)) draw();
    expect([...conversations.value.keys()]).toEqual(['b']);
  });
});

describe('a page in the background', () => {
  it('shows what arrives although the frame that it waits for is not drawn any more', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { server, conversations } = await connectedPage();
    const draws: (() => void)[] = [];
    vi.stubGlobal('requestAnimationFrame', (draw: () => void) => void draws.push(draw));
    server.say({ n: 2, at: 0, type: 'status', conversation: 'a', status: 'waiting' });
    Object.assign(document, { hidden: true });
    server.say({ n: 3, at: 0, type: 'status', conversation: 'a', status: 'idle' });
    vi.advanceTimersByTime(1000);
    expect(conversations.value.get('a')?.status).toBe('idle');
    server.say({ n: 4, at: 0, type: 'status', conversation: 'a', status: 'error' });
    vi.advanceTimersByTime(1000);
    for (const draw of draws) draw();
    expect([conversations.value.get('a')?.status, vi.getTimerCount()]).toEqual(['error', 0]);
  });
});
