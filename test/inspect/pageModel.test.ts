/** The inspector page's model of a log, without a browser: the states of charts, the lines of a file. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { activeStatesAt } from '../../inspector/model/chart/activeStates.ts';
import { runPath } from '../../inspector/model/chart/chartPath.ts';
import { walker } from '../../inspector/model/chart/inferredPath.ts';
import { contextsAt, differences } from '../../inspector/model/contextAt.ts';
import { foldLog } from '../../inspector/model/logFacts.ts';
import { Arrivals, type GrowingConversation, leavesOf } from '../../inspector/model/observedActors.ts';
import { readLog } from '../../inspector/model/readLogText.ts';
import { type CycleRows, cyclesAt, latestShown } from '../../inspector/model/stepRows.ts';
import { axisOf, pixelsOf, placeOf } from '../../inspector/model/timeAxis.ts';
import { lanesOf } from '../../inspector/model/timeLanes.ts';
import { cornerFor } from '../../inspector/view/insetCorner.ts';
import type { LogEntry } from '../../machines/index.ts';
import * as machines from '../../machines/index.ts';
import { createAgent, defineTool, memoryStore, subAgents, toolResult } from '../../src/index.ts';
import { chartOf } from '../../src/inspect/chart.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { ModelError } from '../../src/models/model.ts';
import { type Script, scriptedModel } from '../../src/testing/index.ts';
import { linesFor } from '../stores/storeDirectory.ts';
import { byTask, logOf, spawn } from '../support/subAgentBench.ts';
import { VirtualClock } from '../support/virtualClock.ts';
import { approvedTool, SECRET } from './approvalTool.ts';

const run = walker(chartOf(machines.runMachine));

interface ObservedEvent {
  type: string;
  actorRef: { logic?: { id?: string } };
  snapshot?: { value: never };
}

/** Runs a story; returns its log, and for each run the observed states of RUN. */
async function observed(
  script: Script,
  act: (conversation: Awaited<ReturnType<typeof opened>>['conversation']) => Promise<void>,
) {
  const { conversation, agent, visited } = await opened(script);
  await act(conversation);
  const entries = conversation.log();
  await agent.close();
  return { entries, visited };
}

async function opened(script: Script) {
  const visited: Set<string>[] = [];
  const inspect = (event: unknown): void => {
    const observedEvent = event as ObservedEvent;
    if (observedEvent.actorRef.logic?.id !== 'RUN') return;
    if (observedEvent.type === '@xstate.actor') visited.push(new Set());
    const value = observedEvent.snapshot?.value;
    for (const leaf of value === undefined ? [] : leavesOf(run.chart, value)) visited.at(-1)?.add(leaf);
  };
  const agent = createAgent({ model: scriptedModel(script), tools: [approvedTool], inspect });
  return { agent, visited, conversation: await agent.open('c') };
}

const asks = {
  parts: [
    { type: 'tool-call', callId: 'call_1', name: approvedTool.name, args: '{"text":"x"}' },
    { type: 'finish', reason: 'tool-calls' },
  ],
} as const;

describe('the path through RUN that is derived from a log', () => {
  const stories: [string, Script, Parameters<typeof observed>[1]][] = [
    ['an answer', ['Hello.'], async (c) => void (await c.send('Hi').result)],
    ['a call that waits', [asks], async (c) => void (await c.send('Hi').result)],
    [
      'a call that was allowed',
      [asks, 'Done.'],
      async (c) => {
        await c.send('Hi').result;
        await c.decide({ callId: 'call_1', action: 'approve' });
        await c.resume().result;
      },
    ],
    [
      'a model that fails',
      [new ModelError({ code: 'bad-request', retryable: false })],
      async (c) => void (await c.send('Hi').result),
    ],
  ];
  it.each(stories.map(([name, script, act]) => ({ name, script, act })))(
    'it enters the observed states: $name',
    async ({ script, act }) => {
      const { entries, visited } = await observed(script, act);
      const facts = foldLog(entries);
      expect(facts.runs.length).toBe(visited.length);
      for (const [index, one] of facts.runs.entries()) {
        const path = runPath(run, entries, one);
        const observedStates = [...(visited[index] ?? [])];
        const { entered } = activeStatesAt(run, path, entries.length, 0);
        // Only the innermost states are reported; states passed at once appear as microsteps.
        const leaves = [...entered.keys()].filter((id) => run.tree.states.get(id)?.states.length === 0);
        const first = run.first;
        expect(new Set(leaves.filter((id) => id !== first))).toEqual(
          new Set(observedStates.filter((id) => id !== first)),
        );
      }
    },
  );
});

describe('a log file', () => {
  const lines = [
    '{"format":"runchart-log","version":1,"conversationId":"c"}',
    '{"seq":0,"at":5,"type":"conversation","schema":1,"cwd":"/","createdAt":5}',
    '{"format":"runchart-log","version":1,"conversationId":"c","runId":"r","at":1000}',
    '{"seq":1,"at":0,"type":"run-started"}',
    '{"seq":2,"at":0,"type":"user-message","messageId":"m","kind":"direct","onlyText":"Hi"}',
    '{"seq":3,"at":0,"type":"checkpoint","bound',
    '{"seq":4,"at":90,"type":"checkpoint","boundary":"UserMessage"}',
    'rubbish',
  ];

  it.each([
    ['whole', [1000, 2000, 2001, 3000, 1500, 4000]],
    ['parts of a millisecond', [1_700_000_000_000.3, 1_700_000_000_000.7, 1_700_000_000_001, 0.1, 5e-9, 2]],
    ['far apart', [1_700_000_000_000, 1_700_000_000_001, 0.1, 0.3, 1_700_000_000_002, 1e300]],
  ])('it gives each entry with the run and the time that the store gives it: times that are %s', async (_, times) => {
    const runs = ['r', 'r', null, null, 'r', 's'];
    const entries = times.map((at, seq): LogEntry => {
      const runId = runs[seq] ?? null;
      return { seq, at, conversationId: 'c', runId, type: 'notice', code: 'case', text: `${seq}` };
    });
    const log = await readLog((await linesFor(entries)).join('\n'), 'c.jsonl');
    expect([log.entries, log.broken]).toEqual([entries, []]);
  });

  it('it gives the readable entries in their long form, and a reason for each other line', async () => {
    const log = await readLog(lines.join('\n'), 'c.jsonl');
    expect(log.entries.map(({ seq, at, runId }) => [seq, at, runId])).toEqual([
      [0, 5, null],
      [1, 1000, 'r'],
      [2, 1000, 'r'],
      [4, 1090, 'r'],
    ]);
    expect(log.entries[2]).toMatchObject({ content: [{ type: 'text', text: 'Hi' }] });
    expect(log.broken.map(({ line, why, entriesBefore }) => [line, why, entriesBefore])).toEqual([
      [6, 'it is no JSON', 3],
      [8, 'it is no JSON', 4],
    ]);
  });

  it('it is read in parts, and continues at its last place', async () => {
    const whole = await readLog(lines.join('\n'), 'c.jsonl');
    expect([whole.read, whole.lines, whole.more]).toEqual([lines.length, lines.length, undefined]);
    const seen: number[][] = [];
    for (let part = await readLog(lines.join('\n'), 'c.jsonl', undefined, 2); ; ) {
      seen.push([part.entries.length, part.broken.length, part.read]);
      expect(part.entries).toEqual(whole.entries.slice(0, part.entries.length));
      if (!part.more) break;
      part = await part.more(2);
    }
    expect(seen).toEqual([
      [2, 0, 4],
      [3, 1, 6],
      [4, 2, 8],
    ]);
  });

  it('it can be read up to any entry, without later ones', async () => {
    const { entries } = await observed(['Hello.'], async (c) => void (await c.send('Hi').result));
    const facts = foldLog(entries);
    const at = (index: number) =>
      cyclesAt({ entries, facts, index, now: 0 }).map(({ rows }) => rows.map(({ kind }) => kind));
    const reply = entries.findIndex(({ type }) => type === 'agent-output');
    expect(at(reply - 1)).toEqual([[]]);
    expect(at(entries.length - 1)).toEqual([['text', 'round', 'stop']]);
    expect(at(reply - 1)).toEqual([[]]);
  });
});

describe('a position in a log', () => {
  it('it looks the same with and without later entries: rows, outcomes of calls, and durations', async () => {
    const { entries: written } = await observed([asks, 'Done.'], async (c) => {
      await c.send('Hi').result;
      await c.decide({ callId: 'call_1', action: 'approve' });
      await c.resume().result;
    });
    const entries = written.map((entry, index): LogEntry => ({ ...entry, at: index * index * 1000 }));
    const rowsAt = (all: readonly LogEntry[], index: number) =>
      cyclesAt({ entries: all, facts: foldLog(all), index, now: entries[index]?.at ?? 0 }).map(({ rows, ...cycle }) => [
        cycle,
        rows.map((row) => (row.kind === 'call' ? [row.key, row.state, row.ms] : row)),
      ]);
    for (const index of entries.keys())
      expect(rowsAt(entries, index), `entry ${index}`).toEqual(rowsAt(entries.slice(0, index + 1), index));
    const waiting = entries.findIndex(({ type }) => type === 'decision') - 1;
    expect(JSON.stringify(rowsAt(entries, waiting))).toContain('call_1');
  });
});

describe('a failed run', () => {
  const failing = (code: 'auth' | 'network') =>
    new ModelError({ code, message: `No key ${SECRET}\nAsk for one.`, retryable: code === 'network' });

  /** The error under the stop of each cycle: with observations, and from the log alone. */
  async function reasons(script: Script, interpreter: 'compiled' | 'xstate' = 'compiled') {
    const records = new RecordLog(() => 0);
    const observer = new Observed(records);
    const clock = new VirtualClock();
    const model = scriptedModel(script);
    const agent = createAgent({
      model,
      interpreter,
      secrets: [SECRET],
      ports: { now: clock.now, setTimer: clock.setTimer },
      inspect: observer.observe,
    });
    const conversation = await agent.open('c');
    for (const request of ['One', 'Two']) await clock.until(conversation.send(request).result, 60_000);
    const entries = conversation.log();
    await agent.close();
    const arrivals = new Arrivals<GrowingConversation>(() => ({ entries: [] }));
    for (const record of records.since(0)) {
      if (record.type === 'entry') arrivals.entry('c', record.entry);
      else if (record.type === 'actor')
        arrivals.fact('c', { ...record, chart: record.name === 'run' ? 'RUN' : '' }, new Map());
      else if (record.type === 'stopped') arrivals.fact('c', record, new Map());
    }
    const whys = (seen: GrowingConversation, index = entries.length - 1) =>
      cyclesAt({ ...seen, facts: foldLog(entries), index, now: 0 }).map(({ rows }) =>
        rows.flatMap((row) => (row.kind === 'stop' ? [row.why] : [])),
      );
    return {
      live: whys(arrivals.result().get('c') ?? { entries }),
      file: whys({ entries }),
      before: whys({ entries }, 3),
    };
  }

  it.each(['compiled', 'xstate'] as const)('its error is under its own stop, without secrets: %s', async (by) => {
    const { live, before } = await reasons([failing('auth'), 'Fine.'], by);
    expect(live).toEqual([['auth: No key [redacted]\nAsk for one.'], ['']]);
    expect(before).toEqual([[]]);
  });

  it("without an observer, the log's part of the error is shown", async () => {
    const { live, file } = await reasons(['Fine.', ...Array(4).fill(failing('network'))]);
    expect(live).toEqual([[''], ['network: No key [redacted]\nAsk for one. (after 4 attempts)']]);
    expect(file).toEqual([[''], ['network: No key [redacted]\nAsk for one.']]);
  });
});

describe('the shown requests', () => {
  const cycles = (...rows: number[]): CycleRows[] =>
    rows.map((length, index) => {
      const row = (place: number) => ({ kind: 'text' as const, key: `${place}`, text: '' });
      const about = { id: `${index}`, number: index + 1, request: '', isOpen: false, rounds: 1 };
      return { ...about, rows: Array.from({ length }, (_, place) => row(place)) };
    });

  it('they are the latest complete ones up to a number of rows, and the last one at any length', () => {
    const most = { cycles: 4, rows: 20 };
    expect(latestShown(cycles(), most)).toBe(0);
    expect(latestShown(cycles(3, 3), most)).toBe(2);
    expect(latestShown(cycles(3, 3, 3, 3, 3, 3), most)).toBe(4);
    expect(latestShown(cycles(1, 12, 8, 12), most)).toBe(2);
    expect(latestShown(cycles(1, 1, 50), most)).toBe(1);
    expect(latestShown(cycles(50, 1, 1), most)).toBe(2);
  });
});

describe('the timeline', () => {
  const entry = (at: number, seq: number): LogEntry => ({
    seq,
    at,
    conversationId: 'c',
    runId: 'r',
    type: 'run-started',
  });

  it('it shows every step, and no wait takes more than a fifth of the width', () => {
    const entries = [0, 0, 1, 3_600_000, 3_600_001].map(entry);
    const { x } = axisOf(entries, 1000, 4, 0);
    const gaps = x.slice(1).map((right, index) => right - (x[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(7);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(200);
    expect(gaps[2]).toBe(200);
  });

  it('it has a gap in place of broken lines of a file', () => {
    const entries = [0, 0, 1, 1].map(entry);
    const gapsOf = (broken: readonly number[]) => {
      const { x } = axisOf(entries, 1000, 3, 0, new Set(broken));
      return x.slice(1).map((right, index) => right - (x[index] ?? 0));
    };
    expect(gapsOf([])).toEqual([7, 7, 7]);
    expect(gapsOf([0, 2, 4])).toEqual([7, 22, 7]);
  });

  it('it shows a window around the head if not all entries fit', () => {
    const entries = Array.from({ length: 10_000 }, (_, seq) => entry(seq, seq));
    const { from, to, isWindow, x } = axisOf(entries, 1300, 5000, 0);
    expect(isWindow).toBe(true);
    expect(from).toBeLessThan(5000);
    expect(to).toBeGreaterThan(5000);
    expect(x.at(-1)).toBeLessThanOrEqual(1300);
  });
});

describe('the context of a conversation', () => {
  it('it is the state after a restart at an entry, and shows the difference between two', async () => {
    const { entries } = await observed([asks], async (c) => void (await c.send('Hi').result));
    const at = (type: LogEntry['type']): number => entries.findIndex((entry) => entry.type === type);
    const [asked = {}, waits = {}] = contextsAt(entries, [at('tool-suspended') - 1, at('run-suspended')]);
    expect(asked).toMatchObject({ cycle: 'running', turns: 1 });
    expect(waits).toEqual(contextsAt(entries.slice(0, at('run-suspended') + 1), [entries.length])[0]);
    const { changed, same } = differences(asked, waits);
    expect(changed).toContainEqual({ path: 'cycle', before: '"running"', after: '"suspended"' });
    expect(changed).toContainEqual(expect.objectContaining({ path: 'calls.call_1.status', after: '"suspended"' }));
    expect(changed.some(({ path }) => path === 'turns')).toBe(false);
    expect(same).toBeGreaterThan(5);
    expect(differences(waits, waits).changed).toEqual([]);
    expect(differences({ a: [1, {}], gone: 'x' }, { a: [1, { b: null }] }).changed).toEqual([
      { path: 'a[1].b', after: 'null' },
      { path: 'a[1]', before: '{}' },
      { path: 'gone', before: '"x"' },
    ]);
  });
});

describe('lanes', () => {
  it('they show a failed model call up to the stop, and none after one that ended or waits', async () => {
    const turns = async (...script: Script) => {
      const { entries } = await observed(script, async (c) => void (await c.send('Hi').result));
      const [model] = lanesOf(entries, foldLog(entries));
      return model?.bars.map(({ label, from, to }) => `${label}: ${entries[from]?.type} to ${entries[to ?? -1]?.type}`);
    };
    expect(await turns(new ModelError({ code: 'bad-request', retryable: false }))).toEqual([
      'turn 1: checkpoint to run-stop',
    ]);
    expect(await turns('Hello.')).toEqual(['turn 1: checkpoint to model-reply']);
    expect(await turns(asks)).toEqual(['turn 1: checkpoint to model-reply']);
  });
});

describe('lanes of calls that wait together', () => {
  it('there are as many as waiting calls, however recently the last one started', async () => {
    const wait = (callId: string) =>
      ({ type: 'tool-call', callId, name: approvedTool.name, args: '{"text":"x"}' }) as const;
    const both = { parts: [wait('a'), wait('b'), wait('c'), { type: 'finish', reason: 'tool-calls' }] } as const;
    const { entries } = await observed([both], async (c) => void (await c.send('Hi').result));
    const asked = entries.filter(({ type }) => type === 'tool-suspended').map(({ seq }) => seq);
    const lanesAt = (index: number) => {
      const earlierEntries = entries.slice(0, index + 1);
      return lanesOf(earlierEntries, foldLog(earlierEntries)).filter(({ bars }) => bars[0]?.kind === 'person').length;
    };
    expect(asked.map(lanesAt)).toEqual([1, 2, 3]);
  });
});

describe('the lane of a call that asks several times', () => {
  it.each([1, 2, 3])('it has a bar for each of %i questions, and only the last one waits', async (questions) => {
    const { entries } = await observed([asks], async (c) => void (await c.send('Hi').result));
    const at = entries.findIndex(({ type }) => type === 'tool-suspended');
    const asked = entries[at] as Extract<LogEntry, { type: 'tool-suspended' }>;
    const again = Array.from({ length: questions }, (_, index) => ({ ...asked, suspension: index + 1 }));
    const log = [...entries.slice(0, at), ...again].map((entry, seq) => ({ ...entry, seq }));
    const waits = lanesOf(log, foldLog(log)).flatMap(({ bars }) => bars.filter(({ kind }) => kind === 'person'));
    const places = again.map((_, index) => [at + index, index + 1 < questions ? at + index + 1 : undefined]);
    expect(waits.map(({ from, to }) => [from, to])).toEqual(places);
  });
});

describe('the lanes of a tool that asks while it runs', () => {
  it.each([1, 2, 3])('its bars leave out the time of %i questions, at every moment of the log', async (questions) => {
    let executions = 0;
    const ask = defineTool({
      name: 'ask',
      description: 'Asks a person.',
      parameters: z.object({}),
      execute: () => {
        executions += 1;
        return executions <= questions ? toolResult.pending({ reason: 'person' }) : 'thanks';
      },
    });
    const call = { type: 'tool-call', callId: 'c1', name: 'ask', args: '{}' } as const;
    const model = scriptedModel([{ parts: [call, { type: 'finish', reason: 'tool-calls' }] }, 'done']);
    const agent = createAgent({ model, tools: [ask] });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    for (let question = 0; question < questions; question += 1) {
      await conversation.decide({ callId: 'c1', action: 'answer', payload: question });
      await conversation.resume().result;
    }
    const entries = conversation.log();
    await agent.close();
    for (let length = 1; length <= entries.length; length += 1) {
      const log = entries.slice(0, length);
      const bars = lanesOf(log, foldLog(log)).flatMap((lane) => lane.bars);
      const [work, waits] = (['tool', 'person'] as const).map((kind) => bars.filter((bar) => bar.kind === kind));
      const end = ({ to = length }: { to: number | undefined }): number => to;
      const covered = work?.flatMap(
        (bar) => waits?.filter((wait) => bar.from < end(wait) && wait.from < end(bar)) ?? [],
      );
      expect([length, covered]).toEqual([length, []]);
      if (length < entries.length) continue;
      expect([work?.length, waits?.length]).toEqual([questions + 1, questions]);
    }
  });
});

describe('lanes of sub-agents', () => {
  it("they have a bar for each run in the time of the parent's entries, their waits, and their own lanes when unfolded", async () => {
    const store = memoryStore();
    const note = { type: 'tool-call', callId: 'call_1', name: approvedTool.name, args: '{"text":"x"}' } as const;
    const model = byTask({ go: [[spawn('s', 'alpha', 'beta')]], alpha: [[note]], beta: ['Nothing.'] });
    const agent = createAgent({ model, tools: [approvedTool, subAgents({})], store });
    const conversation = await agent.open('c');
    await conversation.send('go').result;
    const entries = conversation.log();
    const facts = foldLog(entries);
    await agent.close();
    const children = [...facts.calls.values()].flatMap((call) => call.children);
    const logs = new Map(await Promise.all(children.map(async ({ id }) => [id, await logOf(store, id)] as const)));
    expect(children.map(({ name, task }) => [name, task])).toEqual([
      ['a', 'alpha'],
      ['b', 'beta'],
    ]);
    const lanes = (open: string[], isListed = true) =>
      lanesOf(entries, facts, {
        now: (entries.at(-1)?.at ?? 0) + 1000,
        logOf: (id) => (isListed ? { entries: logs.get(id) ?? [], facts: foldLog(logs.get(id) ?? []) } : undefined),
        isOpen: (id) => open.includes(id),
      });
    const [alpha, beta] = lanes([]).filter(({ agent: of }) => of !== undefined);
    expect(alpha?.bars.map(({ kind, to }) => [kind, to === undefined])).toEqual([
      ['agent', false],
      ['person', true],
    ]);
    expect(beta?.bars.map(({ label }) => label)).toEqual(['beta']);
    const began = children[0]?.from ?? 0;
    for (const { from } of alpha?.bars ?? []) expect(from).toBeGreaterThanOrEqual(began - 1);
    const opened = lanes([children[0]?.id ?? '']);
    expect(opened.map(({ name, depth }) => `${depth} ${name}`)).toEqual([
      '0 model',
      '0 tools',
      '0 you',
      '0 a',
      '1 model',
      '1 tools',
      '1 you',
      '0 b',
    ]);
    // If a sub-agent's log is missing, its parent's log contains its start and end.
    const [, , , bare] = lanes([], false);
    expect(bare).toMatchObject({ name: 'a', bars: [{ kind: 'agent', from: began, label: 'alpha' }] });
    expect(bare?.agent).toBeUndefined();
  });

  it('they are between two entries according to their time, and after the last while they continue', () => {
    const at = (time: number, seq: number) =>
      ({ seq, at: time, conversationId: 'c', runId: 'r', type: 'run-started' }) as const;
    const entries = [100, 200, 200, 400].map(at);
    expect([50, 100, 150, 200, 300, 400, 500, 900].map((time) => placeOf(entries, time, 600))).toEqual([
      0, 0, 0.5, 2, 2.5, 3, 3.5, 4,
    ]);
    const axis = axisOf(entries, 1000, 3, 200);
    expect(pixelsOf(axis, 2.5)).toBeCloseTo(((axis.x[2] ?? 0) + (axis.x[3] ?? 0)) / 2);
    expect(pixelsOf(axis, 4)).toBeCloseTo((axis.x[3] ?? 0) + axis.now);
  });
});

describe('the corner of an inset', () => {
  const room = { width: 1000, height: 600 };
  const card = { width: 300, height: 200 };
  const box = (x: number, y: number, isLit = false) => ({ x, y, width: 100, height: 50, isLit });

  it('it is the emptiest one, and never one that would hide a lit part', () => {
    expect(cornerFor({ drawn: [], card, room })).toEqual({ corner: 'bottom right', isCovering: false });
    const [right, left] = [box(800, 500), box(50, 20)];
    expect(cornerFor({ drawn: [right], card, room }).corner).toBe('top right');
    expect(cornerFor({ drawn: [right, box(800, 100), left], card, room }).corner).toBe('bottom left');
    expect(
      cornerFor({ drawn: [right, box(800, 100), box(50, 500), { ...left, isLit: true }], card, room }).corner,
    ).toBe('bottom right');
    const line = { x: 700, y: 450, width: 200, height: 0, isLit: true };
    expect(cornerFor({ drawn: [line], card, room }).corner).toBe('top right');
  });

  it('it stays while nothing lit is below it, and none is returned if there is none', () => {
    expect(cornerFor({ drawn: [box(800, 500)], card, room, now: 'bottom right' }).corner).toBe('bottom right');
    expect(cornerFor({ drawn: [box(800, 500, true)], card, room, now: 'bottom right' }).corner).toBe('top right');
    const everywhere = [box(800, 500, true), box(800, 100, true), box(50, 500, true), box(50, 100, true)];
    expect(cornerFor({ drawn: everywhere, card, room }).isCovering).toBe(true);
  });
});
