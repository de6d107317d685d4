/** Pages that leave, and conversations that are acquired and released: every option, moment and order. */
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { type Conversation, createAgent, defineTool, memoryStore } from '../../src/index.ts';
import { agUiHandler, sessions, uiMessageHandler } from '../../src/transports/index.ts';
import { call, deaf, scripted, t } from '../support/scriptedReplies.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';
import { readUntil } from './agentServer.ts';

const BODIES = [
  ['agUiHandler', agUiHandler, { threadId: 'c', messages: [{ role: 'user', id: 'u', content: 'hi' }] }],
  [
    'uiMessageHandler',
    uiMessageHandler,
    { id: 'c', messages: [{ role: 'user', id: 'u', parts: [{ type: 'text', text: 'hi' }] }] },
  ],
] as const;
const MOMENTS = ['before its first byte', 'in the middle', 'because it reads nothing'] as const;

const ofBody = (body: object): Request =>
  new Request('http://h/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

function pages(onDisconnect: 'continue' | 'cancel' | undefined, make: typeof agUiHandler) {
  const clock = new VirtualClock();
  const agent = createAgent({
    model: scripted([deaf(t('a')), deaf(t('b'))]),
    ports: { now: clock.now, setTimer: clock.setTimer },
  });
  onTestFinished(() => agent.close());
  const shared = sessions(agent, { setTimer: clock.setTimer });
  onTestFinished(() => shared.close());
  const handle = make(agent, {
    authorize: () => true,
    sessions: shared,
    setTimer: clock.setTimer,
    ...(onDisconnect && { onDisconnect }),
  });
  const status = async (): Promise<string> => {
    await flush();
    const conversation = await shared.acquire('c');
    const { status: shown } = conversation;
    shared.release(conversation);
    return shown;
  };
  return { clock, handle, status, shared };
}

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  needsApproval: true,
  execute: () => 'paid',
});

describe.each(BODIES)('a page of %s', (_, make, body) => {
  it('whose answer ends while its message waits in the queue does not take it back, whatever onDisconnect is', async () => {
    for (const onDisconnect of ['continue', 'cancel'] as const) {
      const agent = createAgent({ model: scripted([[call('c1', 'pay')], 'done']), tools: [pay] });
      onTestFinished(() => agent.close());
      const shared = sessions(agent);
      onTestFinished(() => shared.close());
      const conversation = await shared.acquire('c');
      await conversation.send('go').result;
      const handle = make(agent, { authorize: () => true, sessions: shared, whileSuspended: 'followUp', onDisconnect });
      const { body: stream, status } = await handle(ofBody(body));
      expect(status).toBe(200);
      await readUntil(stream?.getReader(), (text) => /RUN_FINISHED|DONE/.test(text));
      await flush();
      expect([conversation.status, conversation.queue.map(({ messageId }) => messageId)]).toEqual(['waiting', ['u']]);
      shared.release(conversation);
    }
  });

  it.each([undefined, 'continue', 'cancel'] as const)(
    'that leaves ends its run where onDisconnect is cancel: %s',
    async (onDisconnect) => {
      for (const moment of MOMENTS) {
        const { clock, handle, status } = pages(onDisconnect, make);
        const { body: stream } = await handle(ofBody(body));
        const reader = stream?.getReader();
        if (moment === 'in the middle') await readUntil(reader, (text) => text.includes('"a"'));
        await flush();
        if (moment === 'because it reads nothing') await clock.advance(31_000);
        else {
          await reader?.cancel();
          await reader?.cancel();
        }
        await clock.advance(1);
        expect([moment, await status()]).toEqual([moment, onDisconnect === 'cancel' ? 'idle' : 'active']);
      }
    },
  );

  it('that leaves while it waits for the request of its own before does not end the next run of another page', async () => {
    const { handle, status, shared } = pages('cancel', make);
    const { body: stream } = await handle(ofBody(body));
    const reader = stream?.getReader();
    await readUntil(reader, (text) => text.includes('"a"'));
    const conversation = await shared.acquire('c');
    await conversation.cancel();
    const next = conversation.send('again');
    await flush();
    await reader?.cancel();
    expect(await status()).toBe('active');
    await next.cancel();
    shared.release(conversation);
  });
});

it.each([undefined, 'continue', 'cancel'] as const)(
  'a page that was reloaded and leaves again ends no run, whatever onDisconnect is: %s',
  async (onDisconnect) => {
    const { handle, status } = pages(onDisconnect, uiMessageHandler);
    const first = (await handle(ofBody(BODIES[1][2]))).body?.getReader();
    await readUntil(first, (text) => text.includes('"a"'));
    const again = (await handle(new Request('http://h/c/stream'))).body?.getReader();
    await readUntil(again, (text) => text.includes('"a"'));
    await again?.cancel();
    expect(await status()).toBe('active');
    await first?.cancel();
    expect(await status()).toBe(onDisconnect === 'cancel' ? 'idle' : 'active');
  },
);

const STEPS = ['acquire', 'release', 'half', 'idle', 'close'] as const;
const LENGTH = 4;
const IDLE_MS = 1_000;

/** By hand: whether the conversation is open after the steps, and whether each acquisition finds the one before. */
class Model {
  isOpen = false;
  holders = 0;
  idleMs = 0;

  take(step: (typeof STEPS)[number]): void {
    if (step === 'acquire') {
      this.isOpen = true;
      this.holders += 1;
      this.idleMs = 0;
    } else if (step === 'release' && this.holders > 0) {
      this.holders -= 1;
      this.idleMs = 0;
    } else if (step === 'close') {
      this.isOpen = false;
      this.holders = 0;
    } else if (this.isOpen && this.holders === 0) {
      this.idleMs += step === 'half' ? IDLE_MS / 2 : step === 'idle' ? IDLE_MS : 0;
      if (this.idleMs >= IDLE_MS) this.isOpen = false;
    }
  }
}

it(`a conversation is open while somebody holds it and for the idle time after that, in any order of ${LENGTH} acts after the first acquisition`, async () => {
  const wrong: string[] = [];
  for (let number = 0; number < STEPS.length ** LENGTH; number += 1) {
    const order = [
      'acquire',
      ...Array.from({ length: LENGTH }, (_, at) => STEPS[Math.floor(number / STEPS.length ** at) % STEPS.length]),
    ] as (typeof STEPS)[number][];
    const clock = new VirtualClock();
    const store = memoryStore();
    let open = 0;
    const agent = createAgent({ model: scripted([]), store, ports: { now: clock.now, setTimer: clock.setTimer } });
    const openAgent = agent.open.bind(agent);
    agent.open = (async (id?: string) => {
      const conversation = await openAgent(id);
      open += 1;
      const complete = (): void => {
        open -= 1;
      };
      conversation.log$(0).subscribe({ complete });
      return conversation;
    }) as typeof agent.open;
    const shared = sessions(agent, { setTimer: clock.setTimer, idleMs: IDLE_MS });
    const model = new Model();
    let last: Conversation | undefined;
    let held: Conversation[] = [];
    for (const step of order) {
      const before = model.isOpen;
      model.take(step);
      if (step === 'acquire') {
        const conversation = await shared.acquire('a');
        if (before !== (conversation === last)) wrong.push(`${order}: ${before ? 'another' : 'the closed'} one`);
        last = conversation;
        held.push(conversation);
      } else if (step === 'release') {
        const latest = held.pop();
        if (latest) shared.release(latest);
      } else if (step === 'close') {
        await last?.close();
        // A conversation that the host closed may be released, which has no effect.
        for (const each of held) shared.release(each);
        held = [];
      } else await clock.advance(step === 'half' ? IDLE_MS / 2 : IDLE_MS);
      await flush(2);
      if (open !== (model.isOpen ? 1 : 0)) wrong.push(`${order}: ${open} open after ${step}`);
    }
    await shared.close();
    await agent.close();
  }
  expect(wrong.slice(0, 5)).toEqual([]);
});
