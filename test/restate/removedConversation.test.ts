/** The removal of a conversation, on a server of the test that runs the objects of the engine in the order of their messages. */
import { describe, expect, it } from 'vitest';
import { engineAgentOf } from '../../src/agent.ts';
import { createAgent } from '../../src/index.ts';
import type { BlobStore } from '../../src/restate/blobStore.ts';
import { engineObjects } from '../../src/restate/engineObjects.ts';
import { processHub } from '../../src/restate/liveHub.ts';
import type { KeptAct } from '../../src/restate/objectCalls.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { sdk, TerminalError } from './objectSdk.ts';

type Handler = (context: object, input?: unknown) => Promise<unknown>;
interface Request {
  service: string;
  key: string;
  method: string;
  parameter?: unknown;
}

/** The server repeats no step here. */
const giveUp = (error: unknown): never => {
  throw new TerminalError((error as Error).message);
};

function server(store?: BlobStore) {
  const agent = engineAgentOf(createAgent({ model: scriptedModel(['hello']) }));
  if (!agent) throw new Error('the agent is not of this process');
  const made = engineObjects({ sdk, agent, service: 'test', hub: processHub, store }) as unknown as {
    name: string;
    handlers: Record<string, Handler>;
  }[];
  const states = new Map<string, Map<string, unknown>>();
  /** The results of steps, which a repeated attempt of a removal gets from the server. */
  const steps = new Map<string, Promise<unknown>>();
  const answers = new Map<string, unknown>();
  const sent: Request[] = [];
  const stateOf = (service: string, key: string): Map<string, unknown> => {
    const state = states.get(`${service}/${key}`) ?? new Map<string, unknown>();
    states.set(`${service}/${key}`, state);
    return state;
  };
  const mapped = (promise: Promise<unknown>) =>
    Object.assign(promise, { map: (change: (value: unknown) => unknown) => promise.then(change) });
  const call = async ({ service, key, method, parameter }: Request): Promise<unknown> => {
    const state = stateOf(service, key);
    const handler = made.find(({ name }) => name === service)?.handlers[method];
    if (!handler) throw new Error(`${service} has no handler ${method}`);
    const context = {
      key,
      request: () => ({ attemptCompletedSignal: new AbortController().signal }),
      get: async (name: string) => state.get(name) ?? null,
      set: (name: string, value: unknown) => state.set(name, value),
      clear: (name: string) => state.delete(name),
      clearAll: () => state.clear(),
      stateKeys: async () => [...state.keys()],
      run: (name: string, act: () => Promise<unknown>) => {
        const step = `${service}/${key} ${name}`;
        const result = (method === 'remove' && steps.get(step)) || Promise.resolve().then(act).catch(giveUp);
        steps.set(step, result);
        return mapped(result);
      },
      awakeable: () => ({ id: 'bell', promise: mapped(new Promise(() => {})) }),
      sleep: () => mapped(new Promise(() => {})),
      genericCall: call,
      genericSend: (request: Request) => void sent.push(request),
      resolveAwakeable: (id: string, answer: unknown) => answers.set(id, answer),
    };
    return handler(context, parameter);
  };
  const deliver = async ({ isHoldLast = false } = {}): Promise<void> => {
    if (isHoldLast) sent.sort((one, other) => Number(one.method === 'hold') - Number(other.method === 'hold'));
    for (let next = sent.shift(); next; next = sent.shift()) await call(next);
  };
  const put = (key: string, waiting: KeptAct) => call({ service: 'testInbox', key, method: 'put', parameter: waiting });
  const remove = (key: string, parameter?: object) => call({ service: 'test', key, method: 'remove', parameter });
  const inboxOf = (key: string): KeptAct[] => (stateOf('testInbox', key).get('acts') ?? []) as KeptAct[];
  /** The state that is left, without the bell of an inbox. */
  const left = (): string[] =>
    [...states].flatMap(([place, state]) =>
      [...state.keys()].flatMap((name) => (name === 'bell' ? [] : `${place}:${name}`)),
    );
  return { stateOf, answers, deliver, put, remove, inboxOf, left };
}

const NOT_FOUND = { error: { code: 'not_found', message: 'there is no such conversation' } };
const first = (more: object = {}) => ({ type: 'conversation', seq: 0, cwd: '/', ...more });
const OF_ROOT = { parent: { conversationId: 'root', callId: 'p' } };
const news = (text: string): KeptAct => ({
  sent: { of: 'sub', news: { kind: 'entries', entries: [{ type: 'user-message', text }] } },
  isNews: true,
});
const actOf = (type: string, to: string): KeptAct => ({ act: { type, actId: to, cwd: '/' }, to });
const actOfParent: KeptAct = {
  sent: { act: { type: 'send', actId: 't', content: 'task' }, to: 't', place: { ...OF_ROOT, tool: 'spawn_agents' } },
  isNews: false,
};

/** A conversation `root` with a sub-agent `sub`. */
function family(store?: BlobStore) {
  const made = server(store);
  for (const [key, entry] of Object.entries({ root: first(), sub: first(OF_ROOT) })) {
    made.stateOf('test', key).set('length', 1).set('e/0', entry);
  }
  made.stateOf('test', 'root').set('s/sub', true);
  return made;
}

describe('the inbox of a conversation that is removed', () => {
  it('contains nothing any more, and no bell of a holder', async () => {
    const { stateOf, deliver, put, remove, left } = family();
    await put('root', news('secret'));
    stateOf('testInbox', 'root').set('bell', 'bell of a holder that has ended');
    await remove('root');
    expect(stateOf('testInbox', 'root').size).toBe(0);
    await deliver();
    expect(left()).toEqual([]);
  });

  it('answers acts for it, and keeps those of a client that opens another one of this id', async () => {
    const { answers, put, remove, inboxOf } = family();
    const acts = ['send', 'rename', 'open', 'send'].map((type, index) => actOf(type, String(index)));
    for (const act of acts) await put('root', act);
    await remove('root');
    expect([...answers]).toEqual([
      ['0', NOT_FOUND],
      ['1', NOT_FOUND],
    ]);
    expect(inboxOf('root')).toEqual(acts.slice(2));
  });

  it('answers an act whose contents are deleted with the conversation, also after the first act of another one', async () => {
    const { answers, put, remove, inboxOf } = family();
    const open = actOf('open', 'a');
    for (const act of [open, { act: { storedAs: '0'.repeat(64) }, to: 'b' }]) await put('root', act);
    await remove('root');
    expect([...answers]).toEqual([['b', NOT_FOUND]]);
    expect(inboxOf('root')).toEqual([open]);
  });

  it('answers acts of a run that another invocation was about to continue', async () => {
    const { stateOf, answers, remove } = family();
    const acts = ['answered', 'waits'].map((to) => ({ act: { type: 'result', actId: to }, to }));
    const item = { kind: 'answers', answers: [{ to: 'answered', answer: { value: {} } }] };
    const lines = [
      { kind: 'acts', acts: [...acts, (actOfParent as { sent: object }).sent] },
      { kind: 'step', name: 'next', value: item },
    ];
    stateOf('test', 'root').set('carried', { version: 1, pages: 1 }).set('c/0', lines);
    await remove('root');
    expect([...answers]).toEqual([['waits', NOT_FOUND]]);
  });

  it('answers them also if the attempt is repeated after their record was deleted', async () => {
    const record = [{ kind: 'acts', acts: [{ act: { type: 'result', actId: 'waits' }, to: 'waits' }] }];
    let bytes: Uint8Array | undefined = new TextEncoder().encode(JSON.stringify(record));
    const store: BlobStore = {
      put: async () => {},
      get: async () => bytes ?? Promise.reject(new Error('gone')),
      delete: async () => {
        bytes = undefined;
      },
    };
    const { stateOf, answers, remove } = family(store);
    const state = stateOf('test', 'root').set('carried', { version: 1, pages: 1 }).set('c/0', { storedAs: 'x' });
    const journaled = [...state];
    await remove('root');
    for (const [name, value] of journaled) state.set(name, value);
    answers.clear();
    await remove('root');
    expect([...answers]).toEqual([['waits', NOT_FOUND]]);
  });

  it('is empty also where the record of a run was lost', async () => {
    const { stateOf, put, remove, left } = family();
    stateOf('test', 'root').set('carried', { version: 1, pages: 1 }).set('c/0', { storedAs: 'x' });
    await put('root', news('secret'));
    await remove('root');
    expect(left().filter((place) => place.includes('root'))).toEqual([]);
  });

  it('keeps the acts of a parent that is not removed', async () => {
    const { put, remove, inboxOf } = family();
    for (const waiting of [news('late'), actOfParent]) await put('sub', waiting);
    await remove('sub');
    expect(inboxOf('sub')).toEqual([actOfParent]);
  });
});

describe('the sub-agents of a conversation that is removed', () => {
  it.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])('leave nothing of an act that waits: begun before: %s, and it is taken after the removal: %s', async (...is) => {
    const [hasBegun, isHoldLast] = is;
    const { stateOf, deliver, put, remove, left } = family();
    if (!hasBegun) stateOf('test', 'sub').clear();
    await put('sub', actOfParent);
    await remove('root');
    await deliver({ isHoldLast });
    expect(left()).toEqual([]);
  });

  it('leave no news in its inbox, and no contents of news', async () => {
    const deleted: string[] = [];
    const store = {
      put: async () => {},
      get: async () => new Uint8Array(),
      delete: async (id: string) => void deleted.push(id),
    };
    const { deliver, put, remove, left } = family(store);
    await remove('root');
    await put('root', news('late'));
    await put('root', { sent: { storedAs: '0'.repeat(64) }, isNews: true });
    await deliver();
    expect(left()).toEqual([]);
    expect(deleted).toEqual(['root', 'sub', 'root']);
  });

  it('leave alone what waits for another conversation of this id', async () => {
    const { stateOf, deliver, put, remove, inboxOf } = family();
    await remove('root');
    stateOf('test', 'root').set('length', 1).set('e/0', first());
    await put('root', news('of another sub-agent'));
    await deliver();
    expect(inboxOf('root')).toEqual([news('of another sub-agent')]);
    expect(stateOf('test', 'root').size).toBe(2);
  });
});
