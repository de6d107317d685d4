/** An agent of the engine with a server that the test plays: openings, requests, and the effects of a close. */
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { restateAgent } from '../../src/restate/index.ts';

afterEach(() => void vi.unstubAllGlobals());

interface Act {
  type: string;
  actId: string;
  [field: string]: unknown;
}

/** An engine with the conversations of these ids. An act makes a conversation. */
function engine(...existing: string[]) {
  const acts: [id: string, act: Act][] = [];
  const services = new Set<string>();
  const ids = new Set(existing);
  let isGone = false;
  vi.stubGlobal('fetch', async (url: string, { body = '{}' }: { body?: string }) => {
    const [service = '', id = '', handler] = new URL(url).pathname.slice(1).split('/');
    services.add(service);
    if (isGone) return new Response('gone', { status: 503 });
    if (handler === 'ask') {
      acts.push([id, JSON.parse(body) as Act]);
      ids.add(id);
      return Response.json({ value: null });
    }
    const entries = ids.has(id)
      ? [{ seq: 0, at: 1, conversationId: id, runId: null, type: 'conversation', schema: 1, cwd: '/', createdAt: 1 }]
      : [];
    const { from } = JSON.parse(body) as { from: number };
    return Response.json({ length: entries.length, entries: entries.slice(from) });
  });
  const goAway = () => {
    isGone = true;
  };
  return { acts, services, goAway };
}
const ingress = 'http://engine:8080';

describe('an agent of the engine', () => {
  it('opens a conversation with an act that names its owner and directory, and no more', async () => {
    const { acts, services } = engine();
    const agent = restateAgent({ ingress });
    onTestFinished(() => agent.close());
    for (const options of [{}, { owner: 'ada' }, { cwd: '/work' }, { owner: 'ada', cwd: '/work' }]) {
      const { id } = await agent.open('one', options);
      expect(id).toBe('one');
      const [opened] = acts.splice(0);
      expect(opened).toEqual(['one', { type: 'open', actId: expect.stringMatching(/.{8}/), ...options }]);
    }
    expect([...services]).toEqual(['runchart']);
  });

  it('gives a conversation without an id one of its own, and each act another id', async () => {
    const { acts } = engine();
    const agent = restateAgent({ ingress, service: 'mine' });
    onTestFinished(() => agent.close());
    const ids = [(await agent.open()).id, (await agent.open()).id];
    expect(new Set([...ids, ...acts.map(([, { actId }]) => actId)]).size).toBe(4);
    expect(acts.map(([id]) => id)).toEqual(ids);
  });

  it.each(['.', '..', 'half \ud800'])('refuses the id %j, which no address can contain', async (id) => {
    const { acts, services } = engine();
    const agent = restateAgent({ ingress });
    onTestFinished(() => agent.close());
    for (const existing of [true, false])
      await expect(agent.open(id, { existing })).rejects.toMatchObject({ code: 'configuration' });
    expect([acts, [...services]]).toEqual([[], []]);
  });

  it('opens an existing conversation, and makes none that is to exist', async () => {
    const { acts } = engine('known');
    const agent = restateAgent({ ingress });
    onTestFinished(() => agent.close());
    expect((await agent.open('known', { existing: true })).id).toBe('known');
    await expect(agent.open('unknown', { existing: true })).rejects.toMatchObject({ code: 'not_found' });
    expect(acts.map(([id]) => id)).toEqual(['known']);
  });

  it('refuses a history, an invalid id and, after its close, each conversation, and asks the engine for nothing', async () => {
    const { acts } = engine();
    const agent = restateAgent({ ingress });
    await expect(agent.open('a', { history: [] })).rejects.toMatchObject({ code: 'configuration' });
    await expect(agent.open('')).rejects.toMatchObject({ code: 'configuration' });
    await expect(agent.list({ limit: 0 })).rejects.toMatchObject({ code: 'configuration' });
    await agent.close();
    await agent.close();
    await expect(agent.open('a')).rejects.toMatchObject({ code: 'closed' });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'closed' });
    expect(acts).toEqual([]);
  });

  it('ends with its close all that it follows, and acts on none of it', async () => {
    const { acts } = engine();
    const agent = restateAgent({ ingress });
    const conversations = [await agent.open('a'), await agent.open('b'), await agent.open('a')];
    const ends = conversations.map(
      (conversation) => new Promise((resolve) => conversation.log$().subscribe({ complete: () => resolve('over') })),
    );
    acts.length = 0;
    await agent.close();
    expect(await Promise.all(ends)).toEqual(['over', 'over', 'over']);
    expect(acts).toEqual([]);
  });

  it.each([
    [{ ingress: 'engine:8080' }, /an http address/],
    [{ ingress: 'ftp://engine' }, /an http address/],
    [{ ingress, service: '' }, /service must be a text/],
    [{ ingress, hub: { publish: () => undefined } }, /a hub with publish and subscribe/],
    [{ ingress, hub: { subscribe: () => undefined } }, /a hub with publish and subscribe/],
    [{ ingress, store: { put: () => 1, get: () => 1 } }, /a blob store with put, get and delete/],
    [{}, /needs the option ingress/],
  ])('refuses the options %j', (options, words) => {
    expect(() => restateAgent(options as never)).toThrow(words);
  });

  it('does not open a conversation whose engine is gone', async () => {
    const { goAway } = engine();
    goAway();
    const agent = restateAgent({ ingress });
    onTestFinished(() => agent.close());
    await expect(agent.open('a')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(agent.open('a', { existing: true })).rejects.toMatchObject({ code: 'unavailable' });
  });
});
