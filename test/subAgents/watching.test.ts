/** The root shows the work of its sub-agents as it happens (docs/internals/contracts.md, REQ-BED-011). */
import { merge } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Live, type LogEntry, subAgents } from '../../src/index.ts';
import { type LiveView, withLiveText } from '../../src/projector/index.ts';
import { LiveFeed } from '../../src/runtime/status.ts';
import { bench, entry } from '../support/agentBench.ts';
import { echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, finish, type Reply, t } from '../support/scriptedReplies.ts';
import { byTask, spawn, submit } from '../support/subAgentBench.ts';

const signalText = (signal: Live): string => {
  const path = signal.path?.join('/') ?? '';
  if ('text' in signal) return `${path} ${signal.type} ${signal.text}`;
  if (signal.type === 'tool-progress') return `${path} ${signal.type} ${signal.callId}`;
  return signal.type === 'status' ? `${path} ${signal.status}` : `${path} ${signal.type}`;
};
const within = (signal: Live): boolean => signal.path !== undefined;

/** One sub-agent whose model streams text, calls a tool, and submits its result. */
async function family(replies: readonly Reply[] = []) {
  const model = byTask({
    alpha: replies.length > 0 ? replies : [[t('I lo'), t('ok'), call('g', 'gate')], [submit('s', 'A')]],
  });
  const gate = gateTool();
  const on = await bench({
    replies: [[t('go'), spawn('p', 'alpha')], 'done'],
    tools: [gate.tool, subAgents({ model, tools: [gate.tool] })],
  });
  return { ...on, gate };
}

describe('a sub-agent', () => {
  it('its signals reach the root, with their path, and the iteration of the run; its entries do not', async () => {
    const { conversation, gate } = await family();
    const signals: Live[] = [];
    conversation.live$.subscribe((signal) => signals.push(signal));
    const run = conversation.send('hi');
    const reading = (async () => {
      const items: (LogEntry | Live)[] = [];
      for await (const item of run) items.push(item);
      return items;
    })();
    await gate.begun('g');
    gate.release('g');
    expect((await run.result).text).toBe('done');
    const inside = signals.filter(within);
    expect(inside.map(signalText)).toEqual([
      'p active',
      'p text-delta I lo',
      'p text-delta ok',
      'p tool-progress g',
      'p tool-progress g',
      'p tool-progress s',
      'p tool-progress s',
      'p idle',
    ]);
    const items = await reading;
    expect(items.filter((item) => !('seq' in item) && within(item))).toEqual(inside);
    expect(items.filter((item) => 'seq' in item)).toEqual(conversation.log().filter(({ runId }) => runId === run.id));
    const own = new Set(inside.flatMap((signal) => ('runId' in signal ? [signal.runId] : [])));
    expect([own.size, own.has(run.id)]).toEqual([1, false]);
  });

  it("it is not part of the root's reply: inFlight and withLiveText are the root's own", async () => {
    const { conversation, gate } = await family();
    const views: LiveView[] = [];
    merge(conversation.log$(), conversation.live$)
      .pipe(withLiveText())
      .subscribe((view) => views.push(view));
    const run = conversation.send('hi');
    await gate.begun('g');
    expect(conversation.inFlight).toBeNull();
    gate.release('g');
    await run.result;
    expect(new Set(views.map(({ inFlight }) => inFlight?.text))).toEqual(new Set([undefined, 'go', 'done']));
  });

  it('a late subscriber receives its streamed text once', async () => {
    const { conversation, clock } = await family([deaf(t('I lo'), t('ok'))]);
    const run = conversation.send('hi');
    await entry(conversation, 'sub-agent');
    await clock.advance(0);
    const late: string[] = [];
    conversation.live$.subscribe((signal) => late.push(signalText(signal)));
    expect(late).toEqual(['p text-delta I look']);
    const [seen] = await Promise.all([
      (async () => {
        for await (const item of run) if (item.type === 'text-delta') return signalText(item);
        return 'nothing';
      })(),
    ]);
    expect(seen).toBe('p text-delta I look');
    await conversation.cancel();
    await clock.advance(0);
    expect(late).toContain('p reset');
  });

  it('a retried attempt is a reset with its path', async () => {
    const { conversation, clock } = await family([[t('half'), finish('content-filter')]]);
    const signals: string[] = [];
    conversation.live$.subscribe((signal) => within(signal) && signals.push(signalText(signal)));
    const run = conversation.send('hi');
    await entry(conversation, 'run-stop');
    await clock.advance(0);
    await run.result;
    expect(signals).toEqual(['p active', 'p text-delta half', 'p reset', 'p error']);
  });

  it('its signals continue in the run that resumes it, and end when its call has a result', async () => {
    const ask = echoTool('ask', { needsApproval: true });
    const model = byTask({
      alpha: [
        [t('may I'), call('x', 'ask', { m: 'x' })],
        [t('yes'), submit('s', 'A')],
      ],
    });
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'one', 'two'],
      tools: [ask.tool, subAgents({ model })],
    });
    const texts = async (run: AsyncIterable<LogEntry | Live>): Promise<string[]> => {
      const signals: string[] = [];
      for await (const item of run) if (item.type === 'text-delta') signals.push(signalText(item));
      return signals;
    };
    expect(await texts(conversation.send('hi'))).toEqual(['p text-delta may I']);
    expect(conversation.status).toBe('waiting');
    await conversation.decide({ callId: 'x', action: 'approve' });
    expect(await texts(conversation.resume())).toEqual(['p text-delta yes', ' text-delta one']);
    expect(await texts(conversation.send('more'))).toEqual([' text-delta two']);
  });

  it('it emits no signal without a listener', async () => {
    let made = 0;
    const next = LiveFeed.prototype.next;
    LiveFeed.prototype.next = function (signal) {
      made += 1;
      next.call(this, signal);
    };
    try {
      const { conversation, gate } = await family();
      const run = conversation.send('hi');
      await gate.begun('g');
      gate.release('g');
      await run.result;
    } finally {
      LiveFeed.prototype.next = next;
    }
    expect(made).toBe(0);
  });
});

describe('nested feeds', () => {
  const text = (words: string): Live => ({ type: 'text-delta', runId: 'r', text: words });
  const streaming = (words: string) =>
    new LiveFeed(() => ({ runId: 'r', text: words, reasoning: '', toolInputs: [{ index: 0, name: 'n', text: '{' }] }));

  it('their paths name the calls from the root down, at any depth, live and in the replay', () => {
    const [root, child, grandchild] = [new LiveFeed(() => null), new LiveFeed(() => null), streaming('begun')];
    root.join(child, 'p');
    child.join(grandchild, 'q');
    expect([grandchild.observed, child.observed]).toEqual([false, false]);
    const signals: Live[] = [];
    const listening = root.signals$.subscribe((signal) => signals.push(signal));
    expect([grandchild.observed, child.observed]).toEqual([true, true]);
    grandchild.next(text('more'));
    child.next(text('own'));
    const input = { type: 'tool-input-delta', runId: 'r', index: 0, name: 'n', text: '{' } as const;
    expect(signals).toEqual([
      { ...text('begun'), path: ['p', 'q'] },
      { ...input, path: ['p', 'q'] },
      { ...text('more'), path: ['p', 'q'] },
      { ...text('own'), path: ['p'] },
    ]);
    listening.unsubscribe();
    expect(grandchild.observed).toBe(false);
  });

  it('an ended one is released: it emits nothing more, and its replay is empty', () => {
    const [root, child] = [new LiveFeed(() => null), streaming('begun')];
    root.join(child, 'p');
    const signals: Live[] = [];
    let over = false;
    root.signals$.subscribe({ next: (signal) => signals.push(signal), complete: () => (over = true) });
    child.complete();
    child.next(text('late'));
    expect([signals.length, child.observed, over]).toEqual([2, false, false]);
    const late: Live[] = [];
    root.signals$.subscribe((signal) => late.push(signal));
    expect(late).toEqual([]);
  });
});
