/** Acts of the host at the moment when a run ends or is cancelled. */
import { describe, expect, it } from 'vitest';
import type { Conversation, LogEntry, Run } from '../../src/index.ts';
import { bench, only } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, deaf } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const both = [{ synchronous: true }, { synchronous: false }];

/** Acts once, at the first of these moments. */
const moments: [string, (on: Conversation, act: () => void) => void][] = [
  ['its run-stop', (on, act) => onEntry(on, ({ type }) => type === 'run-stop', act)],
  [
    'its last checkpoint',
    (on, act) => onEntry(on, (each) => 'boundary' in each && each.boundary === 'RunFinished', act),
  ],
  ['a view that is idle', (on, act) => onView(on, act)],
];
function onEntry(on: Conversation, wanted: (entry: LogEntry) => boolean, act: () => void): void {
  let done = false;
  on.log$().subscribe((each) => {
    if (done || !wanted(each)) return;
    done = true;
    act();
  });
}
function onView(on: Conversation, act: () => void): void {
  let done = false;
  on.view$.subscribe(({ state, cycles }) => {
    if (done || state !== 'idle' || cycles.length === 0) return;
    done = true;
    act();
  });
}

describe.each(both)('a subscriber at the end of a run (%o)', (how) => {
  it.each(moments)('a message sent at %s starts the next run, because the conversation is idle', async (_, at) => {
    const on = await bench({ replies: ['one', 'two'], store: troubledStore(how) });
    let next: Run | undefined;
    const statuses: string[] = [];
    at(on.conversation, () => {
      statuses.push(on.conversation.status);
      next = on.conversation.send('again');
      statuses.push(on.conversation.status);
      expect(() => on.conversation.send('and again')).toThrow(/busy/);
    });
    expect(await on.conversation.send('hi').result).toMatchObject({ termination: 'NaturalEnd', text: 'one' });
    expect(await next?.result).toMatchObject({ termination: 'NaturalEnd', text: 'two' });
    expect(statuses).toEqual(['idle', 'active']);
    expect(only(on.conversation.log(), 'user-message', 'message-queued', 'run-stop', 'diagnostic')).toEqual([
      'user-message direct hi',
      'run-stop completed end_turn',
      'user-message direct again',
      'run-stop completed end_turn',
    ]);
  });

  it('at the stop of a cancelled run, a message starts the next run, and resume() continues the same cycle', async () => {
    for (const act of ['send', 'resume'] as const) {
      const on = await bench({ replies: [deaf(), 'two'], store: troubledStore(how) });
      let next: Run | undefined;
      moments[0]?.[1](on.conversation, () => {
        next = act === 'send' ? on.conversation.send('again') : on.conversation.resume();
      });
      on.conversation.send('hi');
      await on.clock.advance(0);
      await on.conversation.cancel();
      await on.clock.advance(0);
      expect(await next?.result).toMatchObject({ termination: 'NaturalEnd', text: 'two' });
      expect(on.conversation.view().cycles).toHaveLength(act === 'send' ? 2 : 1);
    }
  });

  it('a steer and a followUp are delivered at once, as direct', async () => {
    for (const kind of ['steer', 'followUp'] as const) {
      const store = troubledStore(how);
      const on = await bench({ replies: ['one', 'two'], store, policies: { promoteFollowUpOn: [] } });
      let delivered: Promise<string> | undefined;
      moments[0]?.[1](on.conversation, () => {
        ({ delivered } = on.conversation[kind]('again'));
      });
      await on.conversation.send('hi').result;
      expect(await delivered).toBe('delivered');
      expect(only(on.conversation.log(), 'user-message', 'message-queued')).toEqual([
        'user-message direct hi',
        'user-message direct again',
      ]);
    }
  });

  it.each(moments)(
    'a steer sent at %s calls no model if a cancel follows in the same tick: its run is cancelled',
    async (_, at) => {
      const on = await bench({ replies: ['one', 'two'], store: troubledStore(how) });
      let delivered: Promise<string> | undefined;
      let cancelled: Promise<unknown> | undefined;
      at(on.conversation, () => {
        ({ delivered } = on.conversation.steer('go left'));
        cancelled = on.conversation.cancel();
      });
      await on.conversation.send('hi').result;
      await cancelled;
      const outcome = await delivered;
      expect(on.model.calls).toHaveLength(1);
      expect([on.conversation.status, on.conversation.queue]).toEqual(['idle', []]);
      expect(outcome).toBe('delivered');
      expect(only(on.conversation.log(), 'user-message', 'run-stop')).toEqual([
        'user-message direct hi',
        'run-stop completed end_turn',
        'user-message direct go left',
        'run-stop interrupted cancelled',
      ]);
    },
  );

  it('if a followUp is promoted next, the conversation is busy at the preceding stop', async () => {
    const on = await bench({ replies: ['one', 'two'], store: troubledStore(how) });
    const answers: string[] = [];
    onEntry(
      on.conversation,
      ({ type }) => type === 'model-reply',
      () => on.conversation.followUp('later'),
    );
    moments[0]?.[1](on.conversation, () => {
      answers.push(on.conversation.status);
      expect(() => on.conversation.send('now')).toThrow(/busy/);
    });
    await on.conversation.send('hi').result;
    await on.conversation.resume().result;
    expect(answers).toEqual(['active']);
    expect(only(on.conversation.log(), 'user-message')).toEqual([
      'user-message direct hi',
      'user-message followUp later',
    ]);
  });

  it('at any other entry of a continuing run the conversation is busy', async () => {
    const on = await bench({
      replies: [[call('c1', 'echo', { m: 'a' })], 'done'],
      tools: [echoTool().tool],
      store: troubledStore(how),
    });
    const free = new Set<string>();
    on.conversation.log$(1).subscribe((each) => {
      if (on.conversation.status !== 'active') free.add('boundary' in each ? each.boundary : each.type);
    });
    await on.conversation.send('hi').result;
    expect([...free]).toEqual(['run-stop', 'RunFinished']);
  });
});

it('at the stop of a cycle that was cancelled while it waited, a message starts the next run', async () => {
  const replies = [[call('c1', 'ask', { m: 'a' })], 'two'];
  const on = await bench({ replies, tools: [echoTool('ask').tool], plugins: [asks().plugin] });
  let next: Run | undefined;
  moments[0]?.[1](on.conversation, () => {
    next = on.conversation.send('again');
  });
  await on.conversation.send('hi').result;
  await on.conversation.cancel();
  expect(await next?.result).toMatchObject({ termination: 'NaturalEnd', text: 'two' });
});

it('the conversation is cancelling until the stop is stored, and send() reports this', async () => {
  const clock = new VirtualClock();
  const store = troubledStore({ clock });
  const { conversation } = await bench({ clock, store, replies: ['done', 'next'] });
  const statuses: string[] = [];
  conversation.live$.subscribe((signal) => void (signal.type === 'status' && statuses.push(signal.status)));
  store.trouble((entries) => (entries.some(({ type }) => type === 'model-reply') ? { afterMs: 40 } : 'stored'));
  conversation.send('hi');
  await clock.advance(10);
  expect(conversation.status).toBe('active');
  const cancelled = conversation.cancel();
  expect(conversation.status).toBe('cancelling');
  expect(() => conversation.send('too')).toThrow(/cancellation in progress/);
  await clock.until(cancelled);
  expect(statuses).toEqual(['active', 'cancelling', 'idle']);
  expect(conversation.status).toBe('idle');
});

describe('a steer with a signal', () => {
  const running = async () => {
    const on = await bench({ replies: [deaf(), 'next'] });
    const run = on.conversation.send('hi');
    await on.clock.advance(0);
    return { ...on, run };
  };

  it('if the signal is already aborted, the steer is not queued: its run is cancelled, and the active run continues', async () => {
    const { conversation, clock, run } = await running();
    for (const kind of ['steer', 'followUp'] as const) {
      const dropped = conversation.send('S', { kind, signal: AbortSignal.abort() });
      expect(dropped).not.toBe(run);
      expect((await dropped.result).termination).toBe('Cancelled');
    }
    await clock.advance(0);
    expect(conversation.queue).toEqual([]);
    expect(only(conversation.log(), 'message-queued')).toEqual([]);
    expect(conversation.status).toBe('active');
  });

  it('if the signal fires while the steer is queued, the steer is withdrawn, and the active run continues', async () => {
    const { conversation, clock, run } = await running();
    const caller = new AbortController();
    expect(conversation.send('S', { kind: 'steer', signal: caller.signal })).toBe(run);
    await clock.advance(0);
    expect(conversation.queue).toHaveLength(1);
    caller.abort();
    await clock.advance(0);
    expect(only(conversation.log(), 'message-queued', 'message-returned')).toEqual([
      'message-queued steer S',
      'message-returned cancelled',
    ]);
    expect(conversation.status).toBe('active');
  });
});
