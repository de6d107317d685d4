/**
 * The spans and metrics of one conversation, for each order in which runs begin and end, each end of a model call or tool, and each
 * part of OpenTelemetry that throws.
 */
import * as realApi from '@opentelemetry/api';
import { describe, expect, it, vi } from 'vitest';
import type { LogEntry } from '../../machines/internal.ts';
import { ConversationTrace, ENDED_MOST } from '../../src/otel/conversationTrace.ts';
import { WorkMetrics } from '../../src/otel/workMetrics.ts';
import type { EndedRun, ObservedConversation, Work, WorkValue } from '../../src/plugins/workObserver.ts';

type Context = realApi.Context;
interface Recorded {
  name: string;
  kind: number;
  attributes: Record<string, unknown>;
  links: realApi.Link[];
  /** The name of the span around it. */
  parent: string | undefined;
  failed: boolean;
  ends: number;
}
const usage = { inputTokens: 7, outputTokens: 3, cachedInputTokens: 2, cacheWriteTokens: 1, reasoningTokens: 0 };
const content = [{ type: 'text' as const, text: 'x' }];
const idOf = (number: number) => number.toString(16).padStart(16, '0');
const TRACE_ID = 'a'.repeat(32);

/** A trace of a conversation whose spans, points of metrics and notes are kept. `breaks`: the call of a span that throws. */
function traced({ entries = [] as object[], contents = false, breaks = '', traceId = TRACE_ID } = {}) {
  const spans: Recorded[] = [];
  const points: [name: string, value: number, attributes: object][] = [];
  const notes: [runId: string, name: string, value: unknown][] = [];
  let active: Context = realApi.ROOT_CONTEXT;
  const within = <T>(context: Context, act: () => T): T => {
    const before = active;
    active = context;
    try {
      return act();
    } finally {
      active = before;
    }
  };
  const api = { ...realApi, context: { active: () => active, with: within } } as unknown as typeof realApi;
  const nameIn = (context: Context) =>
    (realApi.trace.getSpan(context) as unknown as { recorded?: Recorded } | undefined)?.recorded?.name;
  const startSpan = (name: string, about: Partial<Recorded>, parent: Context) => {
    const recorded: Recorded = {
      ...{ name, kind: about.kind ?? -1, attributes: { ...about.attributes }, links: about.links ?? [] },
      ...{ parent: nameIn(parent), failed: false, ends: 0 },
    };
    spans.push(recorded);
    const mayThrow = (call: string) => {
      if (breaks === call) throw new Error(`broken: ${call}`);
    };
    return {
      recorded,
      spanContext: () => ({ traceId, spanId: idOf(spans.length), traceFlags: 1 }),
      setAttributes(attributes: object) {
        mayThrow('setAttributes');
        Object.assign(recorded.attributes, attributes);
      },
      setStatus({ code }: { code: number }) {
        mayThrow('setStatus');
        recorded.failed = code === realApi.SpanStatusCode.ERROR;
      },
      end() {
        recorded.ends += 1;
        mayThrow('end');
      },
    };
  };
  const instrument = (name: string) => {
    const add = (value: number, attributes: object): void => {
      if (breaks === 'metrics') throw new Error('broken: metrics');
      points.push([name, value, attributes]);
    };
    return { record: add, add };
  };
  const meter = { createHistogram: instrument, createCounter: instrument };
  const provider = { getMeter: () => meter };
  const conversation = {
    ...{ id: 'c', entries, logState: { calls: new Map([['c1', { name: 'read' }]]) }, redact: <T>(value: T) => value },
    note: (...args: (typeof notes)[number]) => void notes.push(args),
  } as unknown as ObservedConversation;
  const trace = new ConversationTrace({
    ...{ api, tracer: { startSpan } as never, contents, conversation, agent: { name: 'clerk', id: 'a1' } },
    metrics: new WorkMetrics({ getMeterProvider: () => provider } as never),
  });
  /** Acts as a program does within a span of its own. */
  const inSpan = (name: string, act: () => void) =>
    within(realApi.trace.setSpan(realApi.ROOT_CONTEXT, startSpan(name, {}, realApi.ROOT_CONTEXT) as never), act);
  const runs = () => spans.filter(({ name }) => name.startsWith('invoke_agent'));
  const of = (name: string) =>
    points.filter(([each]) => each === name).map(([, value, attributes]) => [value, attributes]);
  return { trace, spans, runs, points: of, notes, inSpan, nameOfActive: () => nameIn(active) };
}

const entry = (type: string, runId: string | null, fields: object = {}) =>
  ({ seq: 1, at: 1, conversationId: 'c', runId, type, ...fields }) as unknown as LogEntry;
const ended = (runId: string, more: Partial<EndedRun> = {}): EndedRun =>
  ({ runId, termination: 'NaturalEnd', usage, costUsd: null, ...more }) as EndedRun;
const modelWork = (runId: string, id = 'small', more: object = {}): Work =>
  ({
    ...{ kind: 'model', runId, isCancelled: () => false, model: { id, provider: `${id}-house` }, costOf: () => 0.5 },
    request: { system: '', messages: [], tools: [{ name: 'read', description: `reads by ${id}`, parameters: {} }] },
    ...more,
  }) as unknown as Work;
const toolWork = (runId: string, isCancelled = false): Work =>
  ({ kind: 'tool', runId, isCancelled: () => isCancelled, call: { callId: 'c1', name: 'read', args: {} } }) as Work;
const reply: WorkValue = { kind: 'reply', items: [], finish: 'stop', usage } as never;
const settled = async () => {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
};

describe('the span of a run', () => {
  it.each(['run-started', 'run-resumed', 'tool-started'])(
    'begins with its entry %s, within the span of its request',
    (type) => {
      const { trace, runs, inSpan } = traced();
      inSpan('request', () => trace.requested('r'));
      trace.logged(entry(type, 'r', { of: 'r0' }));
      expect(runs()).toMatchObject([
        { name: 'invoke_agent clerk', parent: 'request', kind: realApi.SpanKind.INTERNAL },
      ]);
    },
  );

  it.each(['run-started', 'run-resumed', 'tool-started'])(
    'is not begun again by an entry %s that comes after its end, while other runs follow',
    (type) => {
      const { trace, runs } = traced();
      for (const id of ['r1', 'r2', 'r3']) {
        trace.logged(entry('run-started', id));
        trace.ended(ended(id));
        trace.logged(entry(type, 'r1', { of: 'r0' }));
      }
      expect(runs().map(({ attributes, ends }) => [attributes['runchart.run.id'], ends])).toEqual([
        ['r1', 1],
        ['r2', 1],
        ['r3', 1],
      ]);
    },
  );

  it('is not begun by a late call of a run that ended before it began', () => {
    const { trace, runs } = traced();
    trace.ended(ended('r1'));
    trace.logged(entry('run-started', 'r2'));
    trace.logged(entry('tool-started', 'r1'));
    expect(runs().map(({ attributes }) => attributes['runchart.run.id'])).toEqual(['r2']);
  });

  it('is remembered while late entries may come, and not for each run of a long conversation', () => {
    const { trace, runs } = traced();
    trace.logged(entry('run-started', 'open'));
    trace.logged(entry('run-started', 'first'));
    trace.ended(ended('first'));
    const endMore = (times: number, name: string): void => {
      for (let run = 0; run < times; run += 1) trace.ended(ended(`${name}${run}`));
    };
    const begins = (runId: string): number => {
      const before = runs().length;
      trace.logged(entry('run-started', runId));
      return runs().length - before;
    };
    endMore(ENDED_MOST - 1, 'a');
    expect([begins('first'), begins('open')]).toEqual([0, 0]);
    endMore(1, 'b');
    // What was forgotten looks like a run that begins.
    expect([begins('first'), begins('open')]).toEqual([1, 0]);
  });

  it('is one, also if the end of its run is reported twice', () => {
    const { trace, runs } = traced();
    trace.logged(entry('run-started', 'r1'));
    trace.ended(ended('r1'));
    trace.ended(ended('r1'));
    trace.logged(entry('run-started', 'r1'));
    expect(runs()).toHaveLength(1);
  });

  it('has no other one around it if the run was withdrawn, or ended before it began', () => {
    const { trace, runs, inSpan } = traced();
    inSpan('request', () => {
      trace.requested('withdrawn');
      trace.requested('over');
    });
    trace.withdrawn('withdrawn');
    trace.ended(ended('over'));
    for (const runId of ['withdrawn', 'over']) trace.logged(entry('run-started', runId));
    expect(runs().map(({ parent }) => parent)).toEqual([undefined, undefined]);
  });

  it('keeps the parent of its own request while others are asked for and withdrawn', () => {
    const { trace, runs, inSpan } = traced();
    for (const runId of ['r1', 'r2', 'r3']) inSpan(`request of ${runId}`, () => trace.requested(runId));
    trace.withdrawn('r2');
    for (const runId of ['r1', 'r3']) {
      trace.logged(entry('run-started', runId));
      trace.ended(ended(runId));
    }
    expect(runs().map(({ parent }) => parent)).toEqual(['request of r1', 'request of r3']);
  });

  it.each(['run-stop', 'tool-result', 'checkpoint', 'user-message'])('does not begin with %s', (type) => {
    const { trace, runs } = traced();
    trace.logged(entry(type, 'r', { callId: 'c1', outcome: 'succeeded' }));
    expect(runs()).toEqual([]);
  });

  it('begins once: not for a later entry of the run, not after its end, and not for an entry of no run', () => {
    const { trace, runs } = traced();
    trace.logged(entry('run-started', 'r'));
    trace.logged(entry('tool-started', 'r'));
    trace.logged(entry('run-started', null));
    trace.ended(ended('r'));
    trace.logged(entry('tool-started', 'r'));
    trace.ended(ended('never began'));
    trace.logged(entry('tool-started', 'never began'));
    expect(runs()).toMatchObject([{ ends: 1 }]);
  });

  it('begins once, also if other runs end without a beginning meanwhile, and ends once', () => {
    const { trace, runs } = traced();
    trace.logged(entry('run-started', 'r'));
    for (const other of ['taken back', 'taken back too']) {
      trace.ended(ended(other));
      trace.logged(entry('tool-started', 'r'));
    }
    trace.ended(ended('r'));
    trace.logged(entry('tool-started', 'r'));
    expect(runs()).toMatchObject([{ ends: 1 }]);
  });

  it('has the name and the id of the agent, but not in a sub-agent', () => {
    for (const parent of [undefined, { conversationId: 'p', callId: 'c' }]) {
      const { trace, runs } = traced({ entries: [entry('conversation', null, { parent })] });
      trace.logged(entry('run-started', 'r'));
      const [run] = runs();
      expect([run?.name, run?.attributes['gen_ai.agent.name'], run?.attributes['gen_ai.agent.id']]).toEqual(
        parent ? ['invoke_agent', undefined, undefined] : ['invoke_agent clerk', 'clerk', 'a1'],
      );
    }
  });

  it('is noted in the log, unless no trace is recorded', () => {
    for (const traceId of [TRACE_ID, '0'.repeat(32)]) {
      const { trace, notes } = traced({ traceId });
      trace.logged(entry('run-started', 'r'));
      const value = { traceId, spanId: idOf(1), traceFlags: 1 };
      expect(notes).toEqual(traceId === TRACE_ID ? [['r', 'runchart.trace', value]] : []);
    }
  });

  it('links to the span of the run that it resumes, which another process may have noted, and to no other', () => {
    const note = (runId: string, spanId: string, name = 'runchart.trace', traceId = TRACE_ID) =>
      entry('extension', runId, { name, value: { traceId, spanId, traceFlags: 1 } });
    const entries = [
      note('r0', idOf(1)),
      note('r1', idOf(2)),
      note('r1', idOf(3)),
      note('r1', idOf(4), 'other'),
      note('r2', idOf(5)),
      note('broken', idOf(6), 'runchart.trace', 'no trace'),
    ];
    const linksOf = (type: string, of: string) => {
      const { trace, runs } = traced({ entries });
      trace.logged(entry(type, 'next', { of }));
      return runs()[0]?.links;
    };
    const link = (spanId: string) => [{ context: { traceId: TRACE_ID, spanId, traceFlags: 1, isRemote: true } }];
    expect(linksOf('run-resumed', 'r0')).toEqual(link(idOf(1)));
    expect(linksOf('run-resumed', 'r1')).toEqual(link(idOf(3)));
    for (const of of ['broken', 'unknown']) expect(linksOf('run-resumed', of)).toEqual([]);
    for (const type of ['run-started', 'tool-started']) expect(linksOf(type, 'r1')).toEqual([]);
  });

  it('ends with the model that was called last, and with the time that the run took', async () => {
    const { trace, runs, points } = traced();
    trace.logged(entry('run-started', 'r'));
    for (const id of ['small', 'large']) await trace.around(modelWork('r', id), async () => reply as never);
    await settled();
    trace.ended(ended('r'));
    expect(runs()[0]?.attributes).toMatchObject({
      ...{ 'gen_ai.request.model': 'large', 'gen_ai.provider.name': 'large-house' },
    });
    const durations = points('gen_ai.client.operation.duration').map(([, attributes]) => attributes);
    expect(durations).toMatchObject([
      { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'small' },
      { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'large' },
      { 'gen_ai.operation.name': 'invoke_agent' },
    ]);
  });
});

describe('the span of a model call or tool', () => {
  it('is within the span of its run, and within that of the program if its run has none', async () => {
    const { trace, spans, inSpan } = traced();
    trace.logged(entry('run-started', 'r'));
    for (const runId of ['r', 'unknown']) {
      inSpan('program', () => {
        void trace.around(modelWork(runId), async () => reply as never);
        void trace.around(toolWork(runId), async () => ({ kind: 'succeeded', content }) as never);
      });
    }
    const parents = spans.filter(({ name }) => /^(chat|execute_tool)/.test(name)).map(({ parent }) => parent);
    expect(parents).toEqual(['invoke_agent clerk', 'invoke_agent clerk', 'program', 'program']);
    await settled();
    for (const { name, ends } of spans) expect([name, ends]).toEqual([name, /^(chat|execute)/.test(name) ? 1 : 0]);
  });

  it('is active while the work begins', async () => {
    const { trace, nameOfActive } = traced();
    const act = vi.fn(async () => ({ kind: 'succeeded', content, active: nameOfActive() }) as never);
    const value = trace.around(toolWork('r'), act);
    expect(nameOfActive()).toBeUndefined();
    expect(await value).toMatchObject({ active: 'execute_tool read' });
    expect(act).toHaveBeenCalledOnce();
  });

  it('describes a tool as the last model request does', async () => {
    const { trace, spans } = traced();
    trace.logged(entry('run-started', 'r'));
    await trace.around(toolWork('r'), async () => ({ kind: 'succeeded', content }) as never);
    for (const id of ['small', 'large']) await trace.around(modelWork('r', id), async () => reply as never);
    await trace.around(toolWork('r'), async () => ({ kind: 'succeeded', content }) as never);
    const tools = spans.filter(({ name }) => name.startsWith('execute_tool'));
    expect(tools.map(({ attributes }) => attributes['gen_ai.tool.description'])).toEqual([undefined, 'reads by large']);
  });

  const ends: readonly (readonly [string, 'model' | 'tool', boolean, object | Error, object])[] = [
    ['a reply', 'model', false, reply, { outcome: undefined, error: undefined }],
    ['a failure', 'model', false, { kind: 'failed', code: 'rate-limit' }, { error: 'rate-limit' }],
    ['a cancelled call', 'model', true, { kind: 'failed', code: 'aborted' }, { error: 'cancelled' }],
    ['an error', 'model', false, new Error('x'), { error: 'internal' }],
    ['a result', 'tool', false, { kind: 'succeeded', content }, { outcome: 'succeeded' }],
    ['a late result', 'tool', true, { kind: 'succeeded', content }, { outcome: 'succeeded' }],
    ['a question', 'tool', false, { kind: 'pending', reason: 'ask' }, { outcome: 'suspended' }],
    ['a failure', 'tool', false, { kind: 'erred', code: 'threw', content }, { outcome: 'failed', error: 'threw' }],
    [
      'a cancelled call',
      'tool',
      true,
      { kind: 'erred', code: 'aborted', content },
      { outcome: 'cancelled', error: 'cancelled' },
    ],
    ['an error', 'tool', false, new Error('x'), { error: 'internal' }],
  ];
  it.each(ends)('ends with %s of a %s', async (_, kind, isCancelled, value, expected) => {
    const { trace, spans, points } = traced();
    trace.logged(entry('run-started', 'r'));
    const work =
      kind === 'tool' ? toolWork('r', isCancelled) : modelWork('r', 'small', { isCancelled: () => isCancelled });
    const act = async () => {
      if (value instanceof Error) throw value;
      return value as never;
    };
    const result = trace.around(work, act);
    if (value instanceof Error) await expect(result).rejects.toBe(value);
    else expect(await result).toBe(value);
    await settled();
    const { outcome, error } = { outcome: undefined, error: undefined, ...expected };
    const span = spans.at(-1);
    expect([span?.ends, span?.failed]).toEqual([1, error !== undefined]);
    expect([span?.attributes['runchart.tool.outcome'], span?.attributes['error.type']]).toEqual([outcome, error]);
    const [[, labels] = []] = points('gen_ai.client.operation.duration');
    expect(Object(labels)['error.type']).toBe(error);
    expect(points('gen_ai.client.token.usage')).toHaveLength(value === reply ? 2 : 0);
  });

  it('ends with its run as cancelled, once, and the tokens of its late reply count', async () => {
    const { trace, spans, points } = traced();
    trace.logged(entry('run-started', 'r'));
    let answer = (_: unknown): void => {};
    const late = new Promise((resolve) => {
      answer = resolve;
    });
    void trace.around(modelWork('r'), () => late as never);
    void trace.around(toolWork('r'), () => new Promise<never>(() => undefined));
    trace.ended(ended('r', { termination: 'Cancelled' }));
    answer(reply);
    await settled();
    const work = spans.filter(({ name }) => /^(chat|execute)/.test(name));
    expect(work).toMatchObject([
      { ends: 1, failed: true, attributes: { 'error.type': 'cancelled' } },
      { ends: 1, failed: true, attributes: { 'error.type': 'cancelled' } },
    ]);
    expect(points('gen_ai.client.token.usage').map(([value]) => value)).toEqual([7, 3]);
    expect(points('gen_ai.client.operation.duration')).toHaveLength(3);
    trace.ended(ended('r'));
    expect(points('gen_ai.client.operation.duration')).toHaveLength(3);
  });

  it.each(['setAttributes', 'setStatus', 'end', 'metrics'])('ends whatever throws: %s', async (breaks) => {
    const { trace, spans } = traced({ breaks });
    trace.logged(entry('run-started', 'r'));
    expect(await trace.around(modelWork('r'), async () => reply as never)).toBe(reply);
    const failure = { kind: 'erred', code: 'threw', content };
    expect(await trace.around(toolWork('r'), async () => failure as never)).toBe(failure);
    await settled();
    trace.logged(entry('tool-result', 'r', { callId: 'c1', outcome: 'failed', code: 'threw' }));
    trace.ended(ended('r', { termination: 'Error' }));
    expect(spans.map(({ ends }) => ends)).toEqual([1, 1, 1]);
  });

  it('ends also where its cost cannot be counted', async () => {
    const { trace, spans } = traced();
    const costOf = () => {
      throw new Error('no price');
    };
    await trace.around(modelWork('r', 'small', { costOf }), async () => reply as never);
    await settled();
    expect(spans).toMatchObject([{ ends: 1, failed: false }]);
  });
});

it.each(['succeeded', 'failed', 'cancelled', 'unknown'])(
  'a result counts by its tool, outcome and code: %s',
  (outcome) => {
    const { trace, points } = traced();
    for (const code of [undefined, 'denied']) trace.logged(entry('tool-result', 'r', { callId: 'c1', outcome, code }));
    trace.logged(entry('tool-result', 'r', { callId: 'unknown', outcome }));
    const labels = { 'gen_ai.tool.name': 'read', 'runchart.tool.outcome': outcome };
    expect(points('runchart.tool.outcomes')).toEqual([
      [1, labels],
      [1, { ...labels, 'error.type': 'denied' }],
      [1, { ...labels, 'gen_ai.tool.name': '' }],
    ]);
  },
);
