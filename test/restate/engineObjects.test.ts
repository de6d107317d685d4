/** The objects of the engine, and who reads them, with a context and a server of the test. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { engineAgentOf } from '../../src/agent.ts';
import { createAgent } from '../../src/index.ts';
import { engineObjects, type Sdk } from '../../src/restate/engineObjects.ts';
import { type HubSignal, type LiveHub, processHub } from '../../src/restate/liveHub.ts';
import { RestateStore } from '../../src/restate/restateStore.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { nextTurn } from '../../src/timeLimit.ts';

class TerminalError extends Error {}
type Handler = (context: object, input?: unknown) => Promise<unknown>;
interface Made {
  handlers: Record<string, Handler>;
  options: { journalRetention?: unknown };
}

const handlerOf = (...given: unknown[]): unknown => given.at(-1);
const sdk = {
  object: (made: object) => made,
  handlers: { object: { shared: handlerOf, exclusive: handlerOf } },
  serde: {},
  TerminalError,
  RestatePromise: Promise,
} as unknown as Sdk;

function conversationObject(hub: LiveHub): Made {
  const agent = engineAgentOf(createAgent({ model: scriptedModel(['hello']) }));
  if (!agent) throw new Error('the agent is not of this process');
  return engineObjects({ sdk, agent, service: 'test', hub })[0] as unknown as Made;
}

/** The context of an invocation without an earlier attempt. */
function contextOf(acts: object[]) {
  const answers: unknown[] = [];
  const state = new Map<string, unknown>();
  const mapped = (promise: Promise<unknown>) =>
    Object.assign(promise, { map: (change: (value: unknown) => unknown) => promise.then(change) });
  const context = {
    key: 'one',
    request: () => ({ attemptCompletedSignal: new AbortController().signal }),
    get: async (key: string) => state.get(key) ?? null,
    set: (key: string, value: unknown) => state.set(key, value),
    run: (_: string, act: () => Promise<unknown>) => mapped(Promise.resolve().then(act)),
    awakeable: () => ({ id: 'bell', promise: mapped(new Promise(() => {})) }),
    genericCall: async () => acts.splice(0).map((act, index) => ({ act, to: String(index) })),
    genericSend: () => {},
    resolveAwakeable: (_: string, answer: unknown) => answers.push(answer),
  };
  return { context, answers };
}

describe('the objects of a durable engine', () => {
  it('a hub that throws changes nothing', async () => {
    const throwing = { publish: () => raise('no hub'), subscribe: () => () => {} };
    const rejecting = { ...throwing, publish: () => Promise.reject(new Error('no hub')) as unknown as undefined };
    for (const hub of [throwing, rejecting]) {
      const { context, answers } = contextOf([
        { type: 'open', actId: 'a', cwd: '/' },
        { type: 'send', actId: 'b', content: 'hello' },
      ]);
      await conversationObject(hub).handlers.hold?.(context);
      expect(answers).toEqual([{ value: expect.anything() }, { value: expect.anything() }]);
    }
  });

  it.each([[undefined], [null], ['text'], [{}], [{ type: 'send' }], [{ type: 1, actId: 'a' }]])(
    'an act that is none is refused before it waits: %j',
    async (act) => {
      const { context } = contextOf([]);
      await expect(conversationObject(processHub).handlers.ask?.(context, act)).rejects.toThrow(TerminalError);
    },
  );

  it('the engine keeps no record of what is over', () => {
    expect(conversationObject(processHub).options.journalRetention).toBe(0);
  });

  it('a live signal asks the engine for nothing', async () => {
    let reads = 0;
    const server = createServer((_, response) => {
      reads += 1;
      const entries = reads === 1 ? [{ seq: 0, type: 'conversation' }] : [];
      response.end(JSON.stringify({ length: 1, entries }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const ingress = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    let receive: (signal: HubSignal) => void = () => {};
    const hub: LiveHub = {
      publish: () => {},
      subscribe: (_, receiver) => {
        receive = receiver;
        return () => {};
      },
    };
    const items = new RestateStore({ ingress, service: 'test', hub }).follow('one');
    await items.next();
    for (let delta = 0; delta < 200; delta += 1) {
      const item = items.next();
      await nextTurn();
      receive({ type: 'live', next: 1, signal: { type: 'text-delta', runId: 'run', text: 'x' } as never });
      await item;
    }
    await items.return?.();
    server.close();
    expect(reads).toBeLessThan(20);
  });
});

function raise(message: string): never {
  throw new Error(message);
}
