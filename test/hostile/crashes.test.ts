import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type AgentOptions, type Conversation, createAgent, defineTool, type LogEntry } from '../../src/index.ts';
import { atAppend, type Disk, disk } from './crashingStore.ts';
import {
  call,
  calls,
  entriesOf,
  outcomeOf,
  pairedCalls,
  plainTool,
  scripted,
  settle,
  stillClock,
  until,
} from './hostileAgent.ts';
import { watchEachTest, watched } from './hostileChecks.ts';

watchEachTest();

/** Counts the executions of the `ask` tool, and records their keys. */
function world(options: { idempotent?: boolean } = {}) {
  const ran: string[] = [];
  let answer: () => unknown = () => 'ran';
  const ask = defineTool({
    name: 'ask',
    description: '',
    parameters: z.object({}),
    needsApproval: true,
    ...options,
    execute: (_, { idempotencyKey }) => {
      ran.push(idempotencyKey);
      return answer();
    },
  });
  const tools = [ask, plainTool('echo', () => 'hi')];
  const clock = stillClock();
  const ports: AgentOptions['ports'] = { now: clock.now, setTimer: clock.setTimer, random: () => 0 };
  return {
    ran,
    answers: (give: () => unknown) => {
      answer = give;
    },
    /** One life of the process on this disk. */
    open: (on: Disk, dies?: (entries: readonly LogEntry[]) => boolean): Promise<Conversation> =>
      createAgent({
        model: scripted([calls(call('a', 'ask'), call('b', 'echo'))]),
        tools,
        store: on.store(dies),
        ports,
      }).open('c'),
    reopen: async (on: Disk): Promise<Conversation> =>
      watched(await createAgent({ model: scripted([]), tools, store: on.store(), ports }).open('c')),
  };
}
const approve = { callId: 'a', action: 'approve' } as const;
/** A whole life: a request, an approval, a resume. The conversation continues until the store fails. */
async function live(conversation: Conversation): Promise<void> {
  await conversation.send('go').result;
  await conversation.decide(approve);
  await conversation.resume().result;
}
const holds = (type: LogEntry['type']) => (entries: readonly LogEntry[]) =>
  entries.some((entry) => entry.type === type);

describe('H-176 the death of a process around a decision', () => {
  test('before the decision is durable, the call still waits for one', async () => {
    const on = disk();
    const { ran, open, reopen } = world();
    void live(await open(on, holds('decision')));
    await until(() => holds('run-suspended')(on.log('c')));
    const conversation = await reopen(on);
    expect([conversation.status, conversation.pending.length, ran]).toEqual(['waiting', 1, []]);
    expect(await conversation.decide({ callId: 'a', action: 'deny' })).toBe('applied');
    await conversation.resume().result;
    expect([ran, outcomeOf(conversation.log(), 'a')]).toEqual([[], 'failed denied']);
  });

  test('after the decision is durable and before the tool starts, a resume replays it once', async () => {
    const on = disk();
    const { ran, open, reopen } = world();
    void live(await open(on, holds('run-resumed')));
    await until(() => holds('decision')(on.log('c')));
    await settle();
    const conversation = await reopen(on);
    await settle();
    expect([conversation.status, conversation.pending, ran]).toEqual(['waiting', [], []]);
    expect(await conversation.decide(approve)).toBe('duplicate');
    expect(await conversation.decide({ callId: 'a', action: 'deny' })).toBe('conflict');
    await conversation.resume().result;
    await conversation.resume().result;
    expect([ran.length, outcomeOf(conversation.log(), 'a')]).toEqual([1, 'succeeded']);
  });

  test('after the tool was started, its outcome is unknown, and it is never run again automatically', async () => {
    const on = disk();
    const { ran, open, reopen } = world();
    void live(
      await open(on, (entries) => entries.some((entry) => entry.type === 'tool-result' && entry.callId === 'a')),
    );
    await until(() => ran.length === 1);
    const conversation = await reopen(on);
    expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['a']);
    expect(outcomeOf(conversation.log(), 'a')).toBe('unknown');
    expect(await conversation.decide(approve)).toBe('duplicate');
    await conversation.resume().result;
    expect([ran.length, conversation.unsettled.length]).toEqual([1, 1]);
  });

  test('after the outcome is durable, nothing is replayed', async () => {
    const on = disk();
    const { ran, open, reopen } = world();
    const dies = (entries: readonly LogEntry[]): boolean => holds('model-reply')(entries) && ran.length > 0;
    void live(await open(on, dies));
    await until(() => outcomeOf(on.log('c'), 'a') === 'succeeded');
    await settle();
    const conversation = await reopen(on);
    expect(conversation.unsettled).toEqual([]);
    await conversation.resume().result;
    expect([ran.length, outcomeOf(conversation.log(), 'a')]).toEqual([1, 'succeeded']);
    expect(await conversation.decide({ callId: 'a', action: 'deny' })).toBe('conflict');
  });

  test('an idempotent tool that was started runs again with the same key, without another approval', async () => {
    const on = disk();
    const { ran, open, reopen } = world({ idempotent: true });
    void live(
      await open(on, (entries) => entries.some((entry) => entry.type === 'tool-result' && entry.callId === 'a')),
    );
    await until(() => ran.length === 1);
    const conversation = await reopen(on);
    expect([conversation.unsettled, conversation.pending]).toEqual([[], []]);
    expect((await conversation.resume().result).termination).toBe('NaturalEnd');
    expect([ran.length, new Set(ran).size, outcomeOf(conversation.log(), 'a')]).toEqual([2, 1, 'succeeded']);
  });
});

test.each([false, true])(
  'a process may die at any append: no decision is lost, and nothing runs twice (idempotent: %s)',
  async (idempotent) => {
    for (let count = 2; count < 40; count++) {
      const on = disk();
      const { ran, open, reopen } = world({ idempotent });
      let done = false;
      live(await open(on, atAppend(count))).then(
        () => (done = true),
        () => undefined,
      );
      for (let turn = 0; turn < 40 && !done; turn++) await settle();
      const started = entriesOf(on.log('c'), 'tool-started').filter(({ callId }) => callId === 'a').length;
      const decided = holds('decision')(on.log('c'));
      const conversation = await reopen(on);
      const receipt = await conversation.decide(approve);
      if (decided) expect(receipt, `append ${count}`).toBe('duplicate');
      await conversation.resume().result;
      expect(conversation.status, `append ${count}`).toBe('idle');
      expect(ran.length, `append ${count}`).toBeLessThanOrEqual(idempotent && started > 0 ? 2 : 1);
      expect(new Set(ran).size).toBeLessThanOrEqual(1);
      expect(pairedCalls(conversation.messages())).toBe(true);
      if (done) return;
    }
    throw new Error('the run never came to its end');
  },
);

describe('an outcome that is unknown after a crash', () => {
  async function unknown() {
    const on = disk();
    const { ran, open, reopen, answers } = world();
    void live(
      await open(on, (entries) => entries.some((entry) => entry.type === 'tool-result' && entry.callId === 'a')),
    );
    await until(() => ran.length === 1);
    return { on, ran, reopen, answers };
  }

  /** All texts that the model would receive now. */
  const shown = (conversation: Conversation): string[] =>
    conversation.messages().flatMap(({ content }) => content.map((part) => (part.type === 'text' ? part.text : '')));

  test.each([
    [{ ran: { rows: 1 } }, '{\\"rows\\":1}'],
    [{ ran: null }, 'null'],
    [{ ran: false }, 'false'],
    [{ didNotRun: true }, 'did not run'],
  ] as const)('the host may set it: %j', async (how, text) => {
    const { on, ran, reopen } = await unknown();
    const conversation = await reopen(on);
    expect(shown(conversation).join()).toContain('may have run');
    expect(await conversation.settle('a', how)).toBe('applied');
    expect(await conversation.settle('a', { didNotRun: true })).toBe('unknown');
    expect([conversation.unsettled, ran.length]).toEqual([[], 1]);
    expect(shown(conversation).filter((words) => words.includes(text))).toHaveLength(1);
    expect(shown(conversation).join()).not.toContain('may have run');
    expect(pairedCalls(conversation.messages())).toBe(true);
  });

  test('a retry with the same key replaces it, also in a later life, and then nothing remains to retry', async () => {
    const { on, ran, reopen } = await unknown();
    expect(await (await reopen(on)).settle('a', { retry: true })).toBe('applied');
    const conversation = await reopen(on);
    expect(conversation.unsettled).toEqual([]);
    await conversation.resume().result;
    expect([ran.length, new Set(ran).size]).toEqual([2, 1]);
    expect(pairedCalls(conversation.messages())).toBe(true);
    expect(shown(conversation).filter((words) => words.includes('earlier call'))).toHaveLength(1);
    const length = conversation.log().length;
    await conversation.resume().result;
    await (await reopen(on)).resume().result;
    expect([ran.length, on.log('c').length]).toEqual([2, length]);
  });

  test('it is unknown again if the process dies during the retry', async () => {
    const { on, ran, reopen, answers } = await unknown();
    await (await reopen(on)).settle('a', { retry: true });
    answers(() => new Promise(() => undefined));
    const dying = await createAgent({
      model: scripted([]),
      tools: [plainTool('ask', () => ran.push('again') && new Promise(() => undefined))],
      store: on.store(),
    }).open('c');
    void dying.resume();
    await until(() => ran.length === 2);
    const conversation = await reopen(on);
    expect(conversation.unsettled.map(({ callId }) => callId)).toEqual(['a']);
    expect(await conversation.settle('a', { didNotRun: true })).toBe('applied');
    await conversation.resume().result;
    expect(ran).toHaveLength(2);
  });
});

test('decisions survive a regular end of the process in every status', async () => {
  const on = disk();
  const { ran, open, reopen } = world();
  const first = await open(on);
  await first.send('go').result;
  await first.close();
  const second = await reopen(on);
  expect([second.status, second.pending.map(({ suspension }) => suspension)]).toEqual(['waiting', [1]]);
  expect(await second.decide(approve)).toBe('applied');
  await second.close();
  const third = await reopen(on);
  expect([third.status, third.pending, await third.decide(approve)]).toEqual(['waiting', [], 'duplicate']);
  await third.resume().result;
  await third.close();
  const fourth = await reopen(on);
  expect([fourth.status, await fourth.decide(approve), ran.length]).toEqual(['idle', 'duplicate', 1]);
});
