/**
 * Objects that a host gives, whose methods depend on `this`: loggers, stores, handles, models, plugins, tools and
 * others of any class. Invariant: each method is called on its own object.
 */
import { expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, type LogHandle, type LogStore, memoryStore, type Plugin } from '../../src/index.ts';
import { createHandlers, inProcessTransport, route, sessions } from '../../src/transports/index.ts';
import { call, scripted, t } from '../support/scriptedReplies.ts';

/** An object like this one whose methods note each call on something else. */
function strict<T extends object>(name: string, object: T, faults: string[], used: Set<string>): T {
  const own: T = Object.create(Object.getPrototypeOf(object));
  const names = new Set<PropertyKey>();
  for (let level: object = object; level !== Object.prototype && level; level = Object.getPrototypeOf(level))
    for (const key of Reflect.ownKeys(level)) names.add(key);
  for (const key of names) {
    const value = Reflect.get(object, key, object) as unknown;
    if (typeof value !== 'function' || key === 'constructor') {
      Object.defineProperty(own, key, { get: () => Reflect.get(object, key, object) as unknown, enumerable: true });
      continue;
    }
    Object.defineProperty(own, key, {
      enumerable: true,
      value(this: unknown, ...args: unknown[]): unknown {
        used.add(`${name}.${String(key)}`);
        if (this !== own) faults.push(`${name}.${String(key)}`);
        return Reflect.apply(value, object, args);
      },
    });
  }
  return own;
}

it('each method of a host is called on its object, over a whole life of a conversation', async () => {
  const faults: string[] = [];
  const used = new Set<string>();
  const watched = <T extends object>(name: string, object: T): T => strict(name, object, faults, used);
  const memory = memoryStore();
  const store: LogStore = {
    ...memory,
    open: async (id, options) => watched('handle', (await memory.open(id, options)) as LogHandle),
  };
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const nothing = (): undefined => undefined;
  const phases = [
    'runStart',
    'stepStart',
    'beforeInference',
    'afterInference',
    'beforeToolExecute',
    'afterToolExecute',
  ];
  const plugin = {
    name: 'p',
    ...Object.fromEntries([...phases, 'stepEnd', 'naturalEnd', 'runEnd'].map((phase) => [phase, nothing])),
  };
  const definition = watched('tool', {
    name: 'echo',
    description: 'Echoes.',
    parameters: z.object({ m: z.string() }),
    needsApproval: ({ m }: { m: string }) => m === 'ask',
    execute: ({ m }: { m: string }) => m,
  });
  const model = scripted([
    [t('so'), call('c1', 'echo', { m: 'a' }), call('c2', 'echo', { m: 'ask' })],
    'done',
    'again',
  ]);
  const agent = createAgent({
    model: watched('model', model),
    tools: [defineTool(definition)],
    plugins: [watched('plugin', plugin as Plugin)],
    store: watched('store', store),
    logger: watched('logger', logger),
    authorize: () => true,
  });
  const shared = watched('sessions', sessions(agent));
  const handler = createHandlers(agent, { authorize: () => true, sessions: shared, logger });
  const ask = async (path: string, body?: object): Promise<Response> =>
    handler(
      new Request(`http://h/conversations${path}`, {
        ...(body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      }),
    );
  await ask('', { id: 'c' });
  const { runId } = (await (await ask('/c/messages', { content: 'go' })).json()) as { runId: string };
  await ask(`/c/runs/${runId}`);
  await ask('/c/decisions', { callId: 'c2', action: 'approve' });
  await ask('/c/resume', {});
  await ask('');
  const events = await ask('/c/events');
  await events.body?.cancel();
  const { client, server } = inProcessTransport();
  const routed = route(agent, watched('transport', server), { sessions: shared });
  client.send({ type: 'connect', conversation: 'c' } as never);
  client.close();
  await routed;
  await (shared as { close(): Promise<void> }).close();
  await agent.close();
  expect(faults).toEqual([]);
  const needed = [
    'handle.appendNow',
    'handle.close',
    'logger.info',
    'model.stream',
    'sessions.acquire',
    'store.list',
    'store.open',
  ];
  expect(
    [
      ...needed,
      'tool.execute',
      'tool.needsApproval',
      'transport.read',
      ...phases.map((phase) => `plugin.${phase}`),
    ].filter((name) => !used.has(name)),
  ).toEqual([]);
});
