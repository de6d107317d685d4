/**
 * Resources that a close, a time-out, an abort and a leaving reader must release, counted. Invariant: each case first
 * holds something, so that a count of zero at the end is meaningful. Later values of an ended resource have no effect.
 */
import { mkdtempSync, realpathSync } from 'node:fs';
import { appendFile, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { type AgentOptions, createAgent, defineTool, type Model, type ModelPart } from '../../src/index.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { type Hook, type HookOptions, hooks, jsonlStore } from '../../src/node.ts';
import { createHandlers, sessions } from '../../src/transports/index.ts';
import { modelOf } from '../models/scriptedFetch.ts';
import { bench } from '../support/agentBench.ts';
import { Census, NOTHING } from '../support/resourceCensus.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, finish, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

function place(census: Census): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-released-')));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return census.directory(path);
}

function agentOf(census: Census, options: Partial<AgentOptions> & Pick<AgentOptions, 'model'>) {
  const { now, setTimer } = census.clock;
  const agent = createAgent({ ...options, ports: { now, setTimer, random: () => 0 } });
  onTestFinished(() => agent.close());
  return agent;
}

describe('hooks', () => {
  const CALL: readonly Reply[] = [[call('c1', 'echo', { m: 'a' })], 'done'];

  async function hooked(census: Census, options: HookOptions, cwd = '/') {
    const echo = echoTool();
    const on = await bench({
      tools: [echo.tool],
      plugins: [hooks(options)],
      replies: CALL,
      clock: census.clock,
      cwd,
    });
    return { ...on, ran: echo.ran };
  }

  const LATE: readonly (readonly [string, () => unknown])[] = [
    ['blocks', () => ({ decision: 'block', reason: 'too late' })],
    ['rewrites', () => ({ updatedInput: { m: 'too late' } })],
    ['adds context', () => ({ additionalContext: 'too late' })],
    ['ends the run', () => ({ continue: false, stopReason: 'too late' })],
    [
      'throws',
      () => {
        throw new Error('too late');
      },
    ],
  ];
  const EVENTS = ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop'] as const;
  it.each(EVENTS.flatMap((event) => LATE.map(([name, answer]) => [event, name, answer] as const)))(
    'a hook of %s that timed out and %s later has no effect, and holds nothing',
    async (event, _, answer) => {
      const census = new Census();
      let answers = (): void => undefined;
      const late = new Promise<void>((resolve) => {
        answers = resolve;
      });
      const run = vi.fn(() => late.then(answer) as never);
      const on = await hooked(census, { [event]: [{ run, required: false, timeoutMs: 700 }] });
      const running = on.conversation.send('hi');
      expect(await census.clock.until(running.result, 5_000)).toBe(700 * run.mock.calls.length);
      expect(run).toHaveBeenCalled();
      expect((await running.result).termination).toBe('NaturalEnd');
      expect(on.ran).toEqual(['c1']);
      const before = JSON.stringify([on.conversation.log(), on.conversation.status, on.model.calls]);
      answers();
      await flush();
      expect(JSON.stringify([on.conversation.log(), on.conversation.status, on.model.calls])).toBe(before);
      expect(before).not.toContain('too late');
      await on.agent.close();
      expect(census.left()).toEqual(NOTHING);
    },
  );

  const started = async (cwd: string): Promise<number> =>
    vi.waitFor(
      async () => {
        const text = await readFile(join(cwd, 'pid'), 'utf8');
        expect(text).toMatch(/^\d+\n/);
        return Number(text);
      },
      { timeout: 10_000 },
    );
  /** The command writes a file if it survives: a later effect. */
  const slow: Hook = { command: 'echo $$ > pid; sleep 30; touch late', timeoutMs: 60_000 };
  const WAYS = ['time-out', 'cancel', 'close'] as const;
  it.each(WAYS)('a running command is ended, with all its children, by a %s', async (way) => {
    const census = new Census();
    const cwd = place(census);
    const on = await hooked(census, { PreToolUse: [slow] }, cwd);
    const running = on.conversation.send('hi');
    const pid = await started(cwd);
    census.group(pid);
    expect(census.left()).toMatchObject({ processes: 1 });
    if (way === 'time-out') await census.clock.advance(60_000);
    else if (way === 'cancel') await census.clock.until(running.cancel());
    else await census.clock.until(on.conversation.close());
    await running.result;
    expect(on.ran).toEqual([]);
    await census.clock.until(on.agent.close());
    await census.nothingIsLeft();
  });

  it('processes that a command leaves running are ended with it', async () => {
    const census = new Census();
    const cwd = place(census);
    const command = 'echo $$ > pid; sleep 30 > /dev/null 2>&1 & exit 0';
    const on = await hooked(census, { PreToolUse: [{ command }] }, cwd);
    await on.conversation.send('hi').result;
    expect(on.ran).toEqual(['c1']);
    census.group(await started(cwd));
    await on.agent.close();
    await census.nothingIsLeft();
  });

  it('a SessionEnd command that hangs is ended by its time limit, and delays the close no longer', async () => {
    const census = new Census();
    const cwd = place(census);
    const on = await hooked(census, { SessionEnd: [{ ...slow, timeoutMs: 900 }] }, cwd);
    await on.conversation.send('hi').result;
    const closing = on.conversation.close();
    census.group(await started(cwd));
    await census.clock.until(closing, 5_000);
    await census.nothingIsLeft();
  });
});

describe('models', () => {
  const PART: ModelPart = t('a');
  /** A model that keeps its stream open after some parts, and the counts of the census. */
  function inMemory(census: Census): Model {
    return {
      id: 'm',
      stream(_, { signal }) {
        census.signal(signal);
        return census.iterable([PART], true);
      },
    };
  }
  const chunk = new TextEncoder().encode('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
  const headers = { 'content-type': 'text/event-stream' };
  const overTheWire = (census: Census): Model =>
    modelOf(() => new Response(census.stream([chunk], true), { headers }), {
      fetch: async (_url, init) => {
        if (init?.signal) census.signal(init.signal);
        return new Response(census.stream([chunk], true), { headers });
      },
    });
  const byTheSdk = (census: Census): Model =>
    aiSdkModel({
      ...{ specificationVersion: 'v3', provider: 'acme.chat', modelId: 'm-1', supportedUrls: {} },
      doStream: async ({ abortSignal }: { abortSignal: AbortSignal }) => {
        census.signal(abortSignal);
        return { stream: census.stream([{ type: 'text-delta', id: '1', delta: 'a' }], true) };
      },
    } as never);

  const MODELS = [
    ['of a user', inMemory],
    ['of chat completions', overTheWire],
    ['of the AI SDK', byTheSdk],
  ] as const;
  const ENDS = ['time-out', 'cancel', 'close'] as const;
  it.each(MODELS.flatMap(([name, make]) => ENDS.map((end) => [name, end, make] as const)))(
    'a silent model %s is released by a %s',
    async (_, end, make) => {
      const census = new Census();
      const policies = { modelRetry: { attempts: 1 }, modelTimeout: { idleMs: 500 } };
      const agent = agentOf(census, { model: make(census), policies });
      const conversation = await agent.open('c');
      const run = conversation.send('hi');
      await expect.poll(() => conversation.inFlight?.text).toBe('a');
      const { iterators, streams } = census.left();
      expect(iterators + streams).toBe(1);
      if (end === 'time-out') await census.clock.until(run.result, 2_000);
      else if (end === 'cancel') await census.clock.until(run.cancel());
      else await census.clock.until(conversation.close());
      expect((await run.result).termination).toBe(end === 'time-out' ? 'Error' : 'Cancelled');
      await census.clock.until(agent.close());
      await census.nothingIsLeft();
    },
  );

  it('a complete model holds nothing, and one whose stream stays open after its finish is released', async () => {
    const census = new Census();
    const parts: ModelPart[] = [PART, finish('stop')];
    let hangs = false;
    const model: Model = {
      id: 'm',
      stream(_, { signal }) {
        census.signal(signal);
        return census.iterable(parts, hangs);
      },
    };
    const agent = agentOf(census, { model });
    const conversation = await agent.open('c');
    for (const stays of [false, true]) {
      hangs = stays;
      const run = conversation.send('hi');
      await census.clock.until(run.result, 100_000);
      expect((await run.result).text).toBe('a');
    }
    await agent.close();
    await census.nothingIsLeft();
  });

  it.each([-3_600_000, -1, 0, 3_600_000])(
    'a clock that is set by %i ms after a part lets no silent model hang: the silence ends within twice its time',
    async (jump) => {
      const census = new Census();
      const { clock } = census;
      let offset = 0;
      // The second part arrives while the silence after the first one is timed. The clock is read then.
      const model = scripted([deaf(t('a'), t('b'))]);
      const agent = createAgent({
        model,
        policies: { modelRetry: { attempts: 1 }, modelTimeout: { idleMs: 400 } },
        ports: { now: () => clock.now() + offset, setTimer: clock.setTimer, random: () => 0 },
      });
      const conversation = await agent.open('c');
      const run = conversation.send('hi');
      await clock.advance(100);
      expect(conversation.inFlight?.text).toBe('ab');
      offset = jump;
      expect(await clock.until(run.result, 10_000)).toBeLessThanOrEqual(800);
      expect(await run.result).toMatchObject({ termination: 'Error', cause: 'model' });
      await agent.close();
      expect(census.left()).toEqual(NOTHING);
    },
  );
});

describe('tools', () => {
  const ENDS = ['end', 'time-out', 'cancel', 'close'] as const;
  it.each(ENDS)('a streaming tool that obeys its signal holds nothing after its %s', async (end) => {
    const census = new Census();
    const stream = defineTool({
      name: 'stream',
      description: 'Streams.',
      parameters: z.object({}),
      timeoutMs: 300,
      execute: (_, { signal }) => {
        census.signal(signal);
        return census.iterable(['half'], end !== 'end');
      },
    });
    const on = await bench({ tools: [stream], replies: [[call('c1', 'stream')], 'done'], clock: census.clock });
    const run = on.conversation.send('hi');
    await flush();
    if (end !== 'end') expect(census.left()).toMatchObject({ iterators: 1 });
    if (end === 'cancel') await census.clock.until(run.cancel());
    else if (end === 'close') await census.clock.until(on.conversation.close());
    await census.clock.until(run.result, 1_000);
    await census.clock.until(on.agent.close());
    await census.nothingIsLeft();
  });
});

describe('a conversation that is closed', () => {
  it.each(['conversation', 'agent'] as const)('its %s completes every stream, later ones too', async (by) => {
    const census = new Census();
    const gate = gateTool();
    const on = await bench({ tools: [gate.tool], replies: [[call('c1', 'gate')], 'done'], clock: census.clock });
    const { conversation } = on;
    const streams = [() => conversation.live$, () => conversation.log$(), () => conversation.view$];
    for (const stream of streams) census.subscribe(stream());
    const run = conversation.send('hi');
    await gate.begun('c1');
    for (const stream of streams) census.subscribe(stream());
    expect(census.left()).toMatchObject({ subscriptions: 6 });
    await census.clock.until(by === 'agent' ? on.agent.close() : conversation.close());
    await run.result;
    expect(census.left()).toEqual(NOTHING);
    for (const stream of streams) census.subscribe(stream());
    expect(census.left()).toEqual(NOTHING);
    await on.agent.close();
  });
});

describe('stores', () => {
  const types = ['close', 'close after a read that was left', 'refusal of a second holder'] as const;
  it.each(types)('files hold no descriptor after a %s', async (way) => {
    const census = new Census();
    const directory = place(census);
    const store = jsonlStore(directory);
    const on = await bench({ store, replies: ['one'], clock: census.clock });
    await on.conversation.send('hi').result;
    expect(census.left().files).toBeGreaterThan(0);
    if (way === 'refusal of a second holder') {
      const { files } = census.left();
      await expect(store.open('c')).rejects.toMatchObject({ code: 'session_busy' });
      expect(census.left().files).toBe(files);
    }
    await on.agent.close();
    if (way === 'close after a read that was left') {
      const handle = await store.open('c');
      for await (const _ of handle.read()) break;
      await handle.close();
    }
    await store.list();
    await census.nothingIsLeft();
  });

  it('a refused file is closed, and so is a deleted one', async () => {
    const census = new Census();
    const directory = place(census);
    const store = jsonlStore(directory);
    const on = await bench({ store, replies: ['one'], clock: census.clock });
    await on.conversation.send('hi').result;
    await on.agent.close();
    await appendFile(join(directory, 'c.jsonl'), 'no JSON\n{"also":"none"}\n');
    await expect(store.open('c')).rejects.toMatchObject({ code: expect.stringMatching(/corrupt|store/) });
    await census.nothingIsLeft();
    await store.delete('c');
    await census.nothingIsLeft();
  });
});

describe('transports', () => {
  async function serving(census: Census, replies: readonly Reply[]) {
    const { now, setTimer } = census.clock;
    const agent = createAgent({ model: scripted(replies), ports: { now, setTimer } });
    const shared = sessions(agent, { setTimer, idleMs: 1_000 });
    const handle = createHandlers(agent, { authorize: () => true, sessions: shared, setTimer });
    const get = (path: string) => handle(new Request(`http://host${path}`));
    const post = (path: string, body: object) =>
      handle(
        new Request(`http://host${path}`, {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      );
    return { agent, shared, get, post };
  }

  it.each(['goes away', 'reads nothing', 'goes away in the middle of a frame'] as const)(
    'a reader of events that %s leaves no timer and no reference: its conversation is closed after it has been idle',
    async (way) => {
      const census = new Census();
      const on = await serving(census, ['one']);
      expect((await on.post('/conversations', { id: 'a' })).status).toBe(201);
      await on.post('/conversations/a/messages', { content: 'hi' });
      await flush();
      const watched = await on.shared.acquire('a');
      census.subscribe(watched.live$);
      on.shared.release(watched);
      const { body } = await on.get('/conversations/a/events');
      if (!body) throw new Error('no body');
      if (way === 'goes away') await body.cancel();
      if (way === 'goes away in the middle of a frame') {
        const reader = body.getReader();
        await reader.read();
        await reader.cancel();
      }
      // A disconnected reader has no heartbeat. The idle time of the conversation remains.
      if (way !== 'reads nothing') expect(census.left().timers).toBe(1);
      // First the heartbeats, then the idle time of a conversation.
      await census.clock.advance(120_000);
      await flush();
      expect(census.left()).toEqual(NOTHING);
      await on.shared.close();
      await on.agent.close();
    },
  );

  it('closed sessions hold no timer, and refuse those that wait for a place', async () => {
    const census = new Census();
    const { now, setTimer } = census.clock;
    const agent = createAgent({ model: scripted([deaf(t('a'))]), ports: { now, setTimer } });
    const shared = sessions(agent, { setTimer, idleMs: 1_000, openMax: 2, waitMs: 5_000 });
    const busy = await shared.acquire('a');
    census.subscribe(busy.live$);
    const run = busy.send('hi');
    const idle = await shared.acquire('b');
    census.subscribe(idle.log$());
    shared.release(busy);
    const waits = shared.acquire('c');
    const refused = expect(waits).rejects.toMatchObject({ code: 'closed' });
    expect(census.left().timers).toBeGreaterThan(0);
    await census.clock.until(shared.close());
    await refused;
    await run.result;
    expect(census.left()).toEqual(NOTHING);
    await agent.close();
  });
});

describe('the arguments of a call', () => {
  class Arguments {}

  it.each(['an approval', 'a denial', 'a cancel', 'a message in its place'] as const)(
    'after %s nothing keeps them once the model is called again, though the conversation is open',
    async (end) => {
      setFlagsFromString('--expose-gc');
      const collect: () => void = runInNewContext('gc');
      const made: WeakRef<object>[] = [];
      const parameters = z.object({}).transform(() => {
        const args = new Arguments();
        made.push(new WeakRef<object>(args));
        return args;
      });
      const tools = [false, true].map((needsApproval, index) =>
        defineTool({ name: `t${index}`, description: 't', parameters, needsApproval, execute: () => 'ran' }),
      );
      const replies = [[call('c1', 't0'), call('c2', 't1')], 'one', 'two', 'three'];
      const { conversation, agent } = await bench({ tools, replies, policies: { whileSuspended: 'denyAndRun' } });
      await conversation.send('go').result;
      expect([conversation.status, made.length]).toEqual(['waiting', 2]);
      if (end === 'a cancel') await conversation.cancel();
      if (end === 'an approval' || end === 'a denial') {
        await conversation.decide({ callId: 'c2', action: end === 'a denial' ? 'deny' : 'approve' });
        await conversation.resume().result;
      }
      await conversation.send('next').result;
      const remaining = () => made.filter((each) => each.deref() !== undefined).length;
      for (let round = 0; round < 20 && remaining() > 0; round += 1) {
        await flush();
        collect();
      }
      expect(remaining()).toBe(0);
      expect(conversation.status).toBe('idle');
      await agent.close();
    },
  );
});
