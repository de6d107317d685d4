/** Subscribers of the log, live signals, view and run iteration, connected at any time. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { emptyLogState, modelMessages } from '../../machines/internal.ts';
import { RunFeed, RunHandle } from '../../src/conversation/run.ts';
import type { ConversationView, Live, LogEntry, Run } from '../../src/index.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { LiveFeed } from '../../src/runtime/status.ts';
import { bench, entry, only, restart, types } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, t } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const args = { m: 'a' };
const oneRound = [[call('c1', 'echo', args)], 'done'];
const seqs = (entries: readonly LogEntry[]): number[] => entries.map(({ seq }) => seq);
const upTo = (end: number): number[] => Array.from({ length: end }, (_, seq) => seq);

describe('log$', () => {
  it('BED-11: a subscriber that arrives during a run receives stored entries, then new ones, with no gap and no repetition', async () => {
    const gate = gateTool();
    const { conversation } = await bench({ replies: [[call('c1', 'gate')], 'done'], tools: [gate.tool] });
    const run = conversation.send('hi');
    await gate.begun('c1');
    const [all, some]: LogEntry[][] = [[], []];
    conversation.log$().subscribe((each) => all?.push(each));
    conversation.log$(3).subscribe((each) => some?.push(each));
    gate.release('c1');
    await run.result;
    expect(all).toEqual(conversation.log());
    expect(some).toEqual(conversation.log(3));
    expect(seqs(conversation.log())).toEqual(upTo(conversation.log().length));
  });

  it.each([{ synchronous: true }, { synchronous: false }])(
    'BED-11: a subscriber that arrives inside another subscriber, at any entry, receives each entry once (%o)',
    async ({ synchronous }) => {
      const store = troubledStore({ synchronous });
      const { conversation } = await bench({ replies: oneRound, tools: [echoTool().tool], store });
      const inner = new Map<number, number[]>();
      conversation.log$().subscribe((outer) => {
        const seen: number[] = [];
        inner.set(outer.seq, seen);
        conversation.log$().subscribe(({ seq }) => seen.push(seq));
      });
      await conversation.send('hi').result;
      const end = conversation.log().length;
      expect(inner.size).toBe(end);
      for (const seen of inner.values()) expect(seen).toEqual(upTo(end));
    },
  );

  it('a subscriber that sends a message during the replay receives each entry once, in order', async () => {
    const { conversation } = await bench({ replies: ['one', 'two'] });
    await conversation.send('hi').result;
    const seen: number[] = [];
    let second: Run | undefined;
    conversation.log$().subscribe(({ seq }) => {
      seen.push(seq);
      if (seq === 1) second = conversation.send('more');
    });
    await second?.result;
    expect(seen).toEqual(upTo(conversation.log().length));
  });

  it('entries are frozen: a subscriber cannot change the log', async () => {
    const { conversation } = await bench({ replies: oneRound, tools: [echoTool().tool] });
    await conversation.send('hi').result;
    for (const each of conversation.log()) expect(Object.isFrozen(each)).toBe(true);
    const output = await entry(conversation, 'agent-output');
    expect(() => Object.assign(output.item, { name: 'forged' })).toThrow(TypeError);
  });

  it('messages and views are frozen at every depth, and waiting calls are copies: no reader changes the next request', async () => {
    const { conversation, model } = await bench({
      replies: [[call('c1', 'echo', args), call('c2', 'ask', args)], 'waits', 'done'],
      tools: [echoTool().tool, echoTool('ask', { needsApproval: true }).tool],
    });
    const thawed = (value: unknown): unknown[] =>
      typeof value !== 'object' || value === null
        ? []
        : [...(Object.isFrozen(value) ? [] : [value]), ...Object.values(value).flatMap(thawed)];
    const look = (): void => {
      expect(conversation.messages().flatMap(thawed)).toEqual([]);
      expect(modelMessages(conversation.log()).flatMap(thawed)).toEqual([]);
      expect(thawed(conversation.view())).toEqual([]);
      for (const { path } of conversation.pending) path.push('forged');
    };
    conversation.log$().subscribe(look);
    await conversation.send('hi').result;
    await conversation.decide({ callId: 'c2', action: 'approve' });
    await conversation.resume().result;
    expect(only(conversation.log(), 'diagnostic')).toEqual([]);
    expect(model.calls.flatMap(({ messages }) => messages.flatMap(thawed))).toEqual([]);
    expect(conversation.pending).toEqual([]);
  });

  it('it completes when the conversation closes', async () => {
    const { conversation } = await bench({ replies: ['one'] });
    const done = new Promise<void>((resolve) => conversation.log$().subscribe({ complete: resolve }));
    await conversation.close();
    await expect(done).resolves.toBeUndefined();
  });
});

describe('subscribers that throw', () => {
  /** Collects uncaught errors of the library during the test. */
  function uncaught(): unknown[] {
    const found: unknown[] = [];
    const take = (error: unknown): void => void found.push(error);
    process.on('uncaughtException', take);
    process.on('unhandledRejection', take);
    onTestFinished(() => {
      process.off('uncaughtException', take);
      process.off('unhandledRejection', take);
    });
    return found;
  }

  it('they affect neither the run, nor each other, nor the process, and the log reports each of them', async () => {
    const found = uncaught();
    const { conversation, clock } = await bench({ replies: oneRound, tools: [echoTool().tool] });
    const fail = (): never => {
      throw new Error('a careless watcher');
    };
    const seen: number[] = [];
    conversation.log$().subscribe({ next: fail, complete: fail });
    conversation.log$().subscribe(({ seq }) => seen.push(seq));
    conversation.live$.subscribe(fail);
    conversation.view$.subscribe(fail);
    const result = await conversation.send('hi').result;
    await clock.advance(10);
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(seen).toEqual(upTo(conversation.log().length));
    const diagnostics = only(conversation.log(), 'diagnostic');
    expect(diagnostics.length).toBeGreaterThan(0);
    expect(new Set(diagnostics)).toEqual(new Set(['diagnostic observer_error']));
    await conversation.close();
    await clock.advance(10);
    expect(found).toEqual([]);
  });
});

describe('iterating a run', () => {
  const entriesOf = async (run: Run): Promise<LogEntry[]> => {
    const items: LogEntry[] = [];
    for await (const item of run) if ('seq' in item) items.push(item as LogEntry);
    return items;
  };

  it('the entries are the same whether the iteration starts at once, late, or after the end', async () => {
    const gate = gateTool();
    const { conversation } = await bench({ replies: [[call('c1', 'gate')], 'done'], tools: [gate.tool] });
    const run = conversation.send('hi');
    const early = entriesOf(run);
    await gate.begun('c1');
    const late = entriesOf(run);
    gate.release('c1');
    await run.result;
    const after = await entriesOf(run);
    const own = conversation.log().filter(({ runId }) => runId === run.id);
    expect(types(own)[0]).toBe('run-started');
    expect(types(own).at(-1)).toBe('checkpoint');
    expect(await early).toEqual(own);
    expect(await late).toEqual(own);
    expect(after).toEqual(own);
  });

  it('a reader that arrives in time receives the live signals of the run between its entries', async () => {
    const { conversation } = await bench({ replies: [[t('he'), t('llo')]] });
    const items: string[] = [];
    for await (const item of conversation.send('hi')) items.push(item.type === 'text-delta' ? item.text : item.type);
    expect(items.slice(0, 6)).toEqual(['run-started', 'user-message', 'checkpoint', 'he', 'llo', 'agent-output']);
  });

  it('a run of a queued followUp starts at its first entry, when it is promoted', async () => {
    const gate = gateTool();
    const { conversation } = await bench({ replies: [[call('c1', 'gate')], 'one', 'two'], tools: [gate.tool] });
    conversation.send('hi');
    await gate.begun('c1');
    const later = conversation.send('later', { kind: 'followUp' });
    const items = entriesOf(later);
    gate.release('c1');
    await later.result;
    expect(types(await items)[0]).toBe('run-started');
    expect(new Set((await items).map(({ runId }) => runId))).toEqual(new Set([later.id]));
  });

  it('a reader may leave early, and the run continues', async () => {
    const { conversation } = await bench({ replies: oneRound, tools: [echoTool().tool] });
    const run = conversation.send('hi');
    for await (const item of run) if (item.type === 'model-reply') break;
    expect((await run.result).text).toBe('done');
  });

  it('text rejects with the result if the run did not complete', async () => {
    const on = await bench({ replies: [deaf()] });
    const run = on.conversation.send('hi');
    const text = run.text;
    await on.clock.advance(0);
    await run.cancel();
    await expect(text).rejects.toMatchObject({ code: 'run', result: { termination: 'Cancelled' } });
  });

  it('early reads are answered in order, and reads after the end report it', async () => {
    const { conversation } = await bench({ replies: ['one'] });
    const run = conversation.send('hi');
    const iterator = run[Symbol.asyncIterator]();
    const reads = await Promise.all(Array.from({ length: 40 }, () => iterator.next()));
    const own = conversation.log().filter(({ runId }) => runId === run.id);
    const read = reads.flatMap(({ done, value }) => (!done && 'seq' in value ? [value] : []));
    expect(read).toEqual(own);
    expect(reads.at(-1)).toEqual({ done: true, value: undefined });
  });
});

describe('view and view$', () => {
  it('a suspended cycle stays open, is reopened by nothing, and closes with its run', async () => {
    const ask = echoTool('ask');
    const options = { tools: [ask.tool], plugins: [asks().plugin] };
    const before = await bench({ ...options, replies: [[call('c1', 'ask', args)]] });
    await before.conversation.send('hi').result;
    const waiting = before.conversation.view();
    expect(waiting).toMatchObject({ state: 'active', cycles: [{ stop: null, waiting: ['c1'] }] });
    const { conversation } = await restart(before, { ...options, replies: ['done'] });
    expect(conversation.view()).toEqual(waiting);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    const views: ConversationView[] = [];
    conversation.view$.subscribe((view) => views.push(view));
    await conversation.resume().result;
    expect(views[0]?.cycles[0]?.waiting).toEqual(['c1']);
    expect(views.at(-1)).toMatchObject({ state: 'idle', cycles: [{ waiting: [], stop: { reason: 'completed' } }] });
    expect(views.at(-1)).toEqual(conversation.view());
    expect(conversation.view().cycles).toHaveLength(1);
  });

  it('view$ ends with the last view even if its subscriber acts during the first one', async () => {
    const on = await bench({
      replies: [[call('c1', 'ask', args)]],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    let shown = 0;
    let last: ConversationView | undefined;
    on.conversation.view$.subscribe((view) => {
      last = view;
      shown += 1;
      if (shown === 1) on.conversation.followUp('later');
    });
    expect(last?.queued).toHaveLength(1);
    expect(last).toEqual(on.conversation.view());
  });

  it('view$ emits one view for each append, never a state between the entries of one', async () => {
    const on = await bench({ replies: [[call('c1', 'echo', { m: 'a' })], 'done'], tools: [echoTool().tool] });
    const appends: number[] = [];
    const views: unknown[] = [];
    on.conversation.view$.subscribe((view) => {
      views.push(view);
      appends.push(on.conversation.log().length);
    });
    await on.conversation.send('hi').result;
    expect(new Set(appends).size).toBe(appends.length);
    expect(views.at(-1)).toEqual(on.conversation.view());
  });

  it('live$ reports a cancel of a waiting call from its call until its stop is stored', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const on = await bench({
      clock,
      store,
      replies: oneRound,
      tools: [echoTool().tool],
      plugins: [asks('echo').plugin],
    });
    await on.conversation.send('hi').result;
    store.trouble(() => ({ afterMs: 10 }));
    const seen: string[] = [];
    on.conversation.live$.subscribe((signal) => void (signal.type === 'status' && seen.push(signal.status)));
    await on.clock.until(on.conversation.cancel());
    expect(seen).toEqual(['cancelling', 'idle']);
  });

  it('live$ reports each change of the status', async () => {
    const on = await bench({ replies: [during(() => undefined, 'one'), deaf()] });
    const seen: Live[] = [];
    on.conversation.live$.subscribe((signal) => signal.type === 'status' && seen.push(signal));
    await on.conversation.send('hi').result;
    on.conversation.send('more');
    await on.clock.advance(0);
    await on.conversation.cancel();
    expect(seen.map((signal) => signal.type === 'status' && signal.status)).toEqual([
      'active',
      'idle',
      'active',
      'cancelling',
      'idle',
    ]);
  });
});

describe('a reader that leaves a run', () => {
  it('it receives no more, and later items are not kept for it', async () => {
    const gate = gateTool();
    const { conversation } = await bench({ replies: [[call('c1', 'gate')], 'done'], tools: [gate.tool] });
    const run = conversation.send('hi');
    const [left, stays] = [run, run].map((each) => each[Symbol.asyncIterator]());
    await gate.begun('c1');
    await left?.next();
    await left?.return?.();
    const ahead = run[Symbol.asyncIterator]();
    for (let remaining = conversation.log().length; remaining > 1; remaining -= 1) await ahead.next();
    await ahead.return?.();
    gate.release('c1');
    await run.result;
    expect(await left?.next()).toEqual({ done: true, value: undefined });
    expect(await ahead.next()).toEqual({ done: true, value: undefined });
    expect((await stays?.next())?.done).toBe(false);
  });

  it('a break removes the observer of live signals, and the last one ends their creation', async () => {
    const live = new LiveFeed(() => null);
    const log = { entries: [], listen: () => undefined };
    const feed = new RunFeed({ log, live, runId: 'r', logState: emptyLogState() } as unknown as Runtime);
    const run = new RunHandle('r', feed, async () => undefined);
    const readerThatLeaves = async () => {
      for await (const _ of run) break;
    };
    const [one, two] = [readerThatLeaves(), readerThatLeaves()];
    expect(live.observed).toBe(true);
    live.next({ type: 'text-delta', runId: 'r', text: 'x' });
    await Promise.all([one, two]);
    expect(live.observed).toBe(false);
    const iterators = [run, run].map((each) => each[Symbol.asyncIterator]());
    await iterators[0]?.return?.();
    expect(live.observed).toBe(true);
    await iterators[1]?.return?.();
    expect(live.observed).toBe(false);
  });
});
