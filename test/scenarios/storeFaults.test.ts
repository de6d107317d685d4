/**
 * A store that fails at unusual moments: the reported errors, and the log after them (docs/internals/lifecycle.md,
 * Checkpoint Triggers).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  createAgent,
  defineTool,
  type LogEntry,
  type LogStore,
  memoryStore,
  type Plugin,
  RunchartError,
  toolResult,
} from '../../src/index.ts';
import { bench, entry, only } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, scripted } from '../support/scriptedReplies.ts';
import { commits, troubledStore } from '../support/troubledStore.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
/** Suspends the call of `ask`, after everything else that is due. */
const slowToAsk: Plugin['beforeToolExecute'] = async ({ call: { name } }) => {
  if (name !== 'ask') return undefined;
  await flush();
  return { suspend: { reason: 'slow' } };
};
const holds = (entries: readonly LogEntry[], type: LogEntry['type']): boolean =>
  entries.some((each) => each.type === type);
const both = [{ synchronous: true }, { synchronous: false }];

async function waiting(synchronous: boolean, clock = new VirtualClock()) {
  const store = troubledStore({ synchronous, clock });
  const ask = echoTool('ask');
  const options = { clock, store, tools: [ask.tool], plugins: [asks().plugin] };
  const on = await bench({ ...options, replies: [[call('c1', 'ask', args)], 'done', 'more'] });
  await on.conversation.send('hi').result;
  return { ...on, store, ask };
}

describe('a message that cannot be stored', () => {
  it.each(both)(
    'it is not accepted: its run ends with the error, its receipt is returned, and the queue is unchanged (%o)',
    async ({ synchronous }) => {
      const { conversation, store } = await waiting(synchronous);
      store.trouble((entries) => (holds(entries, 'message-queued') ? 'failed' : 'stored'));
      const run = conversation.send('lost');
      expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store', error: { code: 'store' } });
      expect(await conversation.followUp('lost too').delivered).toBe('returned');
      expect(conversation.queue).toEqual([]);
      expect(conversation.status).toBe('waiting');
    },
  );

  it.each(both)(
    'it also ends the active run with the error, because the run needs the store (%o)',
    async ({ synchronous }) => {
      const gate = gateTool();
      const store = troubledStore({ synchronous });
      const { conversation } = await bench({ store, replies: [[call('c1', 'gate')]], tools: [gate.tool] });
      const run = conversation.send('hi');
      await gate.begun('c1');
      store.trouble((entries) => (holds(entries, 'message-queued') ? 'failed' : 'stored'));
      const later = conversation.send('later', { kind: 'followUp' });
      expect(await run.result).toMatchObject({ termination: 'Error', cause: 'store' });
      expect(await later.result).toMatchObject({ termination: 'Error', cause: 'store' });
      expect(only(conversation.log(), 'tool-result', 'run-stop', 'message-queued')).toEqual([
        'tool-result c1 cancelled cancelled',
        'run-stop error store',
      ]);
    },
  );

  it('a message that arrives while the end of a run is being stored does not change that end', async () => {
    const store = troubledStore();
    const { conversation } = await bench({ store, replies: ['done'] });
    let stored = (): void => {};
    const after = new Promise<void>((resolve) => (stored = resolve));
    const ends = (entries: readonly LogEntry[]): boolean => commits(entries, 'RunFinished');
    store.trouble((entries) => (holds(entries, 'message-queued') ? 'failed' : ends(entries) ? { after } : 'stored'));
    const run = conversation.send('hi');
    while (!store.tried.some(ends)) await flush();
    const later = conversation.send('lost', { kind: 'followUp' });
    stored();
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect((await later.result).termination).toBe('Error');
    expect(conversation.status).toBe('idle');
  });
});

it.each([60, 95])(
  'a message whose append fails after %d ms of a cancel is reported, and the cancel is not delayed',
  async (afterMs) => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const { conversation } = await bench({ clock, store, replies: [deaf()] });
    const run = conversation.send('hi');
    await clock.advance(0);
    store.trouble((entries) => (holds(entries, 'message-queued') ? { afterMs, fails: true } : 'stored'));
    const later = conversation.send('later', { kind: 'followUp' });
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    await run.result;
    expect(await clock.until(later.result)).toBeLessThanOrEqual(100);
    expect(await later.result).toMatchObject({ termination: 'Error', cause: 'store' });
    expect(conversation.queue).toEqual([]);
  },
);

describe('a run that could not start', () => {
  it.each(both)('it leaves the result of the previous run unchanged (%o)', async ({ synchronous }) => {
    const store = troubledStore({ synchronous });
    const on = await bench({ store, replies: [during(() => on.conversation.followUp('F'), 'one'), 'two'] });
    let failures = 0;
    store.trouble((entries) => {
      const promoted = entries.some((each) => each.type === 'user-message' && each.kind === 'followUp');
      if (!promoted || failures > 0) return 'stored';
      failures += 1;
      return 'failed';
    });
    expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', text: 'one' });
    await entry(on.conversation, 'run-stop', ({ reason }) => reason === 'error');
    expect(only(on.conversation.log(), 'user-message', 'run-stop')).toEqual([
      'user-message direct hi',
      'run-stop completed end_turn',
      'user-message followUp F',
      'run-stop error store',
    ]);
  });

  it.each(both)('its message is stored if the store works again (%o)', async ({ synchronous }) => {
    const store = troubledStore({ synchronous });
    const { conversation, model } = await bench({ store, replies: ['ok'] });
    let failures = 0;
    store.trouble(() => {
      failures += 1;
      return failures === 1 ? 'failed' : 'stored';
    });
    expect(await conversation.send('hi').result).toMatchObject({ termination: 'Error', cause: 'store' });
    expect(only(conversation.log(), 'user-message', 'run-stop')).toEqual([
      'user-message direct hi',
      'run-stop error store',
    ]);
    expect(model.calls).toHaveLength(0);
    expect((await conversation.send('again').result).text).toBe('ok');
  });
});

describe('a waiting conversation', () => {
  it.each(both)('it continues to wait if its cancel cannot be stored (%o)', async ({ synchronous }) => {
    const { conversation, store, clock } = await waiting(synchronous);
    store.trouble((entries) => (holds(entries, 'run-stop') ? 'failed' : 'stored'));
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    expect(conversation.status).toBe('waiting');
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['c1']);
    store.trouble(() => 'stored');
    await conversation.cancel();
    expect(conversation.status).toBe('idle');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
  });

  it('a cancel closes it even if a message that arrived meanwhile could not be stored', async () => {
    const { conversation, store } = await waiting(false);
    let stored = (): void => {};
    const after = new Promise<void>((resolve) => (stored = resolve));
    store.trouble((entries) =>
      holds(entries, 'message-queued') ? 'failed' : holds(entries, 'run-stop') ? { after } : 'stored',
    );
    const cancelled = conversation.cancel();
    const lost = conversation.followUp('lost');
    stored();
    await cancelled;
    expect(await lost.delivered).toBe('returned');
    expect(conversation.status).toBe('idle');
    expect(only(conversation.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
  });

  it.each(both)('a decision that could not be stored has no effect (%o)', async ({ synchronous }) => {
    const { conversation, store, ask } = await waiting(synchronous);
    store.trouble((entries) => (holds(entries, 'decision') ? 'failed' : 'stored'));
    await expect(conversation.decide({ callId: 'c1', action: 'approve' })).rejects.toMatchObject({ code: 'store' });
    expect(conversation.pending).toHaveLength(1);
    store.trouble(() => 'stored');
    expect((await conversation.resume().result).termination).toBe('Suspended');
    expect(await conversation.decide({ callId: 'c1', action: 'approve' })).toBe('applied');
    expect((await conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['c1']);
  });

  it('a decision is answered after it is durable, also during a cancel', async () => {
    const clock = new VirtualClock();
    const on = await waiting(false, clock);
    on.store.trouble((entries) => (holds(entries, 'decision') ? { afterMs: 70 } : 'stored'));
    let answered = false;
    const decided = on.conversation.decide({ callId: 'c1', action: 'approve' }).then((receipt) => {
      answered = true;
      return receipt;
    });
    await clock.advance(5);
    const cancelled = on.conversation.cancel();
    await clock.advance(60);
    expect(answered).toBe(false);
    expect(await clock.until(Promise.all([decided, cancelled]))).toBeLessThanOrEqual(100);
    expect(await decided).toBe('applied');
  });
});

it('INV-6: the deadline of a cancel ends with it, and the next run has unlimited time', async () => {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const on = await bench({
    clock,
    store,
    replies: [deaf(), [call('c1', 'echo', args)], 'done'],
    tools: [echoTool().tool],
  });
  on.conversation.send('hi');
  await clock.advance(0);
  store.trouble(() => ({ afterMs: 30 }));
  const later = on.conversation.send('later', { kind: 'followUp' });
  void on.conversation.cancel();
  expect(await clock.until(later.result)).toBeGreaterThan(150);
  expect(await later.result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  expect(clock.waiting).toBe(0);
});

it('CKPT-4: a suspension that was lost with the end of its run does not wait', async () => {
  const store = troubledStore({ synchronous: true });
  const keep = defineTool({
    name: 'keep',
    description: 'Writes a key.',
    parameters: z.object({ value: z.number() }),
    execute: ({ value }) => toolResult.success('kept', { state: { key: value } }),
  });
  const { conversation } = await bench({
    store,
    replies: [[call('c1', 'keep', { value: 1 }), call('c2', 'keep', { value: 2 }), call('c3', 'ask', args)], 'ok'],
    tools: [keep, echoTool('ask').tool],
    plugins: [{ name: 'slow', beforeToolExecute: slowToAsk }],
  });
  store.trouble((entries) => (commits(entries, 'RunFinished') ? 'failed' : 'stored'));
  expect(await conversation.send('hi').result).toMatchObject({ termination: 'Error', cause: 'store' });
  store.trouble(() => 'stored');
  expect(conversation.pending).toEqual([]);
  expect(await conversation.send('again').result).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
  expect(conversation.status).toBe('idle');
});

it('CKPT-4: a commit that fails during a replay leaves the call unknown, and later decisions are refused as such', async () => {
  const { conversation, store, ask } = await waiting(true);
  await conversation.decide({ callId: 'c1', action: 'approve' });
  store.trouble((entries) => (commits(entries, 'ToolResultsCommitted') ? 'failed' : 'stored'));
  expect(await conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'store' });
  expect(ask.ran).toEqual(['c1']);
  store.trouble(() => 'stored');
  expect((await conversation.resume().result).termination).toBe('NaturalEnd');
  expect(ask.ran).toEqual(['c1']);
  expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 unknown']);
});

it('CKPT-4: a denial that was lost with its commit may be repeated, and the decision is used with it', async () => {
  const { conversation, store } = await waiting(true);
  await conversation.decide({ callId: 'c1', action: 'deny', reason: 'not now' });
  store.trouble((entries) => (commits(entries, 'ToolResultsCommitted') ? 'failed' : 'stored'));
  expect(await conversation.resume().result).toMatchObject({ termination: 'Error', cause: 'store' });
  const decisionEntries = only(conversation.log(), 'decision', 'tool-result', 'decision-consumed');
  expect(decisionEntries).toEqual(['decision c1 1', 'tool-result c1 failed denied', 'decision-consumed c1 1']);
});

it('the end of a run is reported once it is stored, even if the start of the next run is not', async () => {
  const gate = gateTool();
  const store = troubledStore({ synchronous: false });
  const on = await bench({ store, replies: [[call('c1', 'gate')], 'done', 'next'], tools: [gate.tool] });
  const run = on.conversation.send('hi');
  await gate.begun('c1');
  await on.conversation.followUp('then');
  store.trouble((entries) => (holds(entries, 'run-started') ? 'stuck' : 'stored'));
  gate.release('c1');
  expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  expect(only(on.conversation.log(), 'run-started', 'run-stop')).toEqual([
    'run-started',
    'run-stop completed end_turn',
  ]);
});

describe('an error of its own that a store throws', () => {
  const failure = new TypeError('socket gone');
  const failing = async (): Promise<never> => {
    throw failure;
  };
  /** Throws in this method of the store or of its handles, and keeps whether the handle was closed. */
  function brokenIn(place: string, afterClose = async (): Promise<void> => {}) {
    const inner = memoryStore();
    const closed: string[] = [];
    const store: LogStore = {
      ...inner,
      list: place === 'list' ? failing : inner.list,
      async open(id, options) {
        if (place === 'open') throw failure;
        const handle = await inner.open(id, options);
        return {
          read: (from) =>
            place === 'read' ? { [Symbol.asyncIterator]: () => ({ next: failing }) } : handle.read(from),
          append: place === 'append' ? failing : (entries, expectedSeq) => handle.append(entries, expectedSeq),
          close: async () => {
            closed.push(id);
            await handle.close();
            await afterClose();
          },
        };
      },
    };
    return { agent: createAgent({ model: scripted([]), store }), closed };
  }

  it.each([
    ['open', 'the store could not open', []],
    ['read', 'the store could not read', ['c']],
    ['append', 'the store could not append', ['c']],
  ])('by %s is a RunchartError of `open()` with its cause, and leaves no handle open', async (place, task, closed) => {
    const broken = brokenIn(place);
    const error = await broken.agent.open('c').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RunchartError);
    expect(error).toMatchObject({ code: 'store', message: `${task}: TypeError: socket gone`, cause: failure });
    expect(broken.closed).toEqual(closed);
  });

  it.each(['read', 'append'] as const)(
    'by %s is reported even if the handle cannot be closed either',
    async (place) => {
      const broken = brokenIn(place, () => Promise.reject(new Error('close failed')));
      const error = await broken.agent.open('c').catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'store', message: `the store could not ${place}: TypeError: socket gone` });
      expect(broken.closed).toEqual(['c']);
    },
  );

  it('by list is a RunchartError of `list()` with its cause', async () => {
    const error = await brokenIn('list')
      .agent.list()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RunchartError);
    const message = 'the store could not list: TypeError: socket gone';
    expect(error).toMatchObject({ code: 'store', message, cause: failure });
  });

  it('by append is a RunchartError of the act that could not be stored, with its cause', async () => {
    const memory = memoryStore();
    let isGone = false;
    const store: LogStore = {
      list: (options) => memory.list(options),
      delete: (id) => memory.delete(id),
      open: async (id, options) => {
        const handle = await memory.open(id, options);
        return {
          read: (from) => handle.read(from),
          append: (entries, expectedSeq) => (isGone ? failing() : handle.append(entries, expectedSeq)),
          close: () => handle.close(),
        };
      },
    };
    const replies = [[call('c1', 'ask', args)]];
    const on = await bench({ store, tools: [echoTool('ask').tool], plugins: [asks().plugin], replies });
    await on.conversation.send('hi', { messageId: 'm' }).result;
    isGone = true;
    const acts = [
      () => on.conversation.decide({ callId: 'c1', action: 'approve' }),
      () => on.conversation.rename('Rent'),
      () => on.conversation.rewind('m'),
    ];
    for (const act of acts) {
      const error = await act().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RunchartError);
      const message = 'the store could not append: TypeError: socket gone';
      expect(error).toMatchObject({ code: 'store', message, cause: failure });
    }
  });
});
