/** Spans and metrics of runs, model calls and tools, read from exporters in memory. */
import { type Attributes, context, metrics, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { ConfigurationError, defineTool, ModelError, subAgents, toolResult } from '../../src/index.ts';
import { openTelemetry } from '../../src/otel/openTelemetry.ts';
import { type BenchOptions, bench, entry, restart, storeWith } from '../support/agentBench.ts';
import { call, deaf, during, finish, scripted, t } from '../support/scriptedReplies.ts';

const exporter = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
const metricExporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 1_000_000 });
const meters = new MeterProvider({ readers: [reader] });
metrics.setGlobalMeterProvider(meters);
const app = trace.getTracer('app');

beforeEach(() => {
  exporter.reset();
  metricExporter.reset();
});

const spans = (): ReadableSpan[] => exporter.getFinishedSpans();
const named = (name: string): ReadableSpan[] => spans().filter((span) => span.name === name);
function one(name: string): ReadableSpan {
  const [span, ...others] = named(name);
  expect([name, span === undefined, others.length]).toEqual([name, false, 0]);
  return span as ReadableSpan;
}
const idOf = (span: ReadableSpan): string => span.spanContext().spanId;
const parentOf = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId;

const add = defineTool({
  name: 'add',
  description: 'Adds',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => {
    await Promise.resolve();
    app.startSpan('inside a tool').end();
    return a + b;
  },
});
const fail = defineTool({
  name: 'fail',
  description: 'Fails',
  parameters: z.object({}),
  execute: () => toolResult.error('no such thing', 'missing'),
});
const ask = defineTool({
  name: 'ask',
  description: 'Asks a person',
  parameters: z.object({}),
  execute: (_, { decision }) => (decision ? 'thanks' : toolResult.pending({ reason: 'person' })),
});

const traced = (options: BenchOptions, telemetry?: Parameters<typeof openTelemetry>[0]) =>
  bench({ ...options, plugins: [openTelemetry(telemetry)] });

const TWO_CALLS = [
  [t('let me see'), call('c1', 'add', { a: 1, b: 2 }), call('c2', 'fail'), finish('tool-calls', 10)],
  [t('3'), finish('stop', 5)],
];

describe('spans of a run', () => {
  it('a run with two tools, one of which fails, is a tree with usage, cost, names and errors', async () => {
    const model = scripted(TWO_CALLS, { id: 'small', prices: { input: 1_000, output: 2_000 } });
    const { conversation } = await traced({ model, tools: [add, fail] });
    const request = app.startSpan('request');
    const run = context.with(trace.setSpan(context.active(), request), () => conversation.send('1 + 2?'));
    await run.result;
    request.end();
    const root = one('invoke_agent');
    expect(parentOf(root)).toBe(idOf(request as unknown as ReadableSpan));
    expect(root.kind).toBe(SpanKind.INTERNAL);
    expect(root.status.code).toBe(SpanStatusCode.UNSET);
    expect(root.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.conversation.id': 'c',
      'gen_ai.usage.input_tokens': 15,
      'gen_ai.usage.output_tokens': 15,
      'runchart.cost_usd': 0.045,
      'runchart.run.id': run.id,
      'runchart.termination': 'NaturalEnd',
    });
    const chats = named('chat small');
    expect(chats.map(parentOf)).toEqual([idOf(root), idOf(root)]);
    expect(chats.map(({ kind }) => kind)).toEqual([SpanKind.CLIENT, SpanKind.CLIENT]);
    expect(chats[0]?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.conversation.id': 'c',
      'gen_ai.request.model': 'small',
      'gen_ai.request.stream': true,
      'gen_ai.response.finish_reasons': ['tool-calls'],
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 10,
      'gen_ai.usage.cache_read.input_tokens': 0,
      'gen_ai.usage.cache_creation.input_tokens': 0,
      'runchart.cost_usd': 0.03,
    });
    const added = one('execute_tool add');
    expect(parentOf(added)).toBe(idOf(root));
    expect(added.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.conversation.id': 'c',
      'gen_ai.tool.name': 'add',
      'gen_ai.tool.call.id': 'c1',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.description': 'Adds',
      'runchart.tool.outcome': 'succeeded',
    });
    const failed = one('execute_tool fail');
    expect(failed.status.code).toBe(SpanStatusCode.ERROR);
    expect(failed.attributes).toMatchObject({ 'runchart.tool.outcome': 'failed', 'error.type': 'missing' });
    expect(parentOf(one('inside a tool'))).toBe(idOf(added));
  });

  it('a call that is refused has no span', async () => {
    const { conversation } = await traced({
      replies: [[call('c1', 'add', { a: 'x' }), call('c2', 'none')], 'done'],
      tools: [add],
    });
    await conversation.send('go').result;
    expect(spans().filter(({ name }) => name.startsWith('execute_tool'))).toEqual([]);
  });

  it('each attempt of a model call is a span, and the failed one has the code', async () => {
    const { conversation, clock } = await traced({ replies: [new ModelError({ code: 'server' }), 'done'] });
    const run = conversation.send('go');
    await entry(conversation, 'model-retry');
    await clock.advance(60_000);
    await run.result;
    const [first, second] = named('chat scripted');
    expect(first?.attributes['error.type']).toBe('server');
    expect(first?.status.code).toBe(SpanStatusCode.ERROR);
    expect(second?.status.code).toBe(SpanStatusCode.UNSET);
    expect(one('invoke_agent').status.code).toBe(SpanStatusCode.UNSET);
  });

  it('a run that fails has the code of its error', async () => {
    const { conversation } = await traced({ replies: [new ModelError({ code: 'auth' })] });
    const { error } = await conversation.send('go').result;
    expect(one('invoke_agent').attributes['error.type']).toBe(error?.code);
    expect(one('invoke_agent').status.code).toBe(SpanStatusCode.ERROR);
  });

  it('a cancel ends the spans of a model and a tool that ignore it', async () => {
    const hang = defineTool({
      name: 'hang',
      description: 'Hangs',
      parameters: z.object({}),
      execute: () => new Promise(() => undefined),
    });
    const { conversation } = await traced({ replies: [deaf(t('hm')), [call('c1', 'hang')]], tools: [hang] });
    conversation.send('go');
    await vi.waitFor(() => expect(conversation.inFlight?.text).toBe('hm'));
    await conversation.cancel();
    conversation.send('go');
    await entry(conversation, 'tool-started');
    await conversation.cancel();
    expect(spans().map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
      ['chat scripted', 'cancelled'],
      ['invoke_agent', 'Cancelled'],
      ['chat scripted', undefined],
      ['execute_tool hang', 'cancelled'],
      ['invoke_agent', 'Cancelled'],
    ]);
  });

  it('a model call for a summary is a span of the run', async () => {
    const asks = { name: 'asks', stepStart: () => ({ compact: true as const }) };
    const model = scripted(['one', 'Summary', 'two'], { contextWindow: 10_000, maxOutputTokens: 0 });
    const { conversation } = await bench({ model, plugins: [openTelemetry(), asks] });
    await conversation.send('go').result;
    await conversation.send('more').result;
    const root = named('invoke_agent')[1] as ReadableSpan;
    expect(named('chat scripted').map((span) => parentOf(span) === idOf(root))).toEqual([false, true, true]);
  });

  it('spans that a model client makes are children of its call', async () => {
    const reply = during(async () => {
      await Promise.resolve();
      app.startSpan('inside a model').end();
    }, 'done');
    const { conversation } = await traced({ replies: [reply] });
    await conversation.send('go').result;
    expect(parentOf(one('inside a model'))).toBe(idOf(one('chat scripted')));
  });

  it('a tool that yields progress keeps its context', async () => {
    const steps = defineTool({
      name: 'steps',
      description: 'Steps',
      parameters: z.object({}),
      async *execute() {
        yield 'one';
        await Promise.resolve();
        app.startSpan('inside steps').end();
        yield 'two';
      },
    });
    const { conversation } = await traced({ replies: [[call('c1', 'steps')], 'done'], tools: [steps] });
    await conversation.send('go').result;
    expect(parentOf(one('inside steps'))).toBe(idOf(one('execute_tool steps')));
  });
});

describe('runs of a cycle', () => {
  it('a resumption in another process links to the run that was suspended', async () => {
    const options = { replies: [[call('c1', 'ask')]], tools: [ask], plugins: [openTelemetry()] };
    const first = await bench(options);
    await first.conversation.send('go').result;
    const suspended = one('invoke_agent');
    expect(suspended.status.code).toBe(SpanStatusCode.UNSET);
    expect(suspended.attributes['runchart.termination']).toBe('Suspended');
    expect(one('execute_tool ask').attributes['runchart.tool.outcome']).toBe('suspended');
    expect(first.conversation.log().filter(({ type }) => type === 'extension')).toMatchObject([
      { name: 'runchart.trace', value: { spanId: idOf(suspended), traceId: suspended.spanContext().traceId } },
    ]);
    exporter.reset();
    const { conversation } = await restart(first, { ...options, replies: ['done'], plugins: [openTelemetry()] });
    await conversation.decide({ callId: 'c1', action: 'answer', payload: 'yes' });
    const request = app.startSpan('request');
    await context.with(trace.setSpan(context.active(), request), () => conversation.resume()).result;
    const resumed = one('invoke_agent');
    expect(parentOf(resumed)).toBe(request.spanContext().spanId);
    expect(resumed.links.map(({ context: link }) => link.spanId)).toEqual([idOf(suspended)]);
    expect(one('execute_tool ask').attributes['runchart.tool.outcome']).toBe('succeeded');
  });

  it('a run that `open()` continues has its context as parent and links to the run that was cut off', async () => {
    const policies = { onRestart: 'resume' } as const;
    const first = await bench({ replies: [deaf(t('hm'))], plugins: [openTelemetry()] });
    first.conversation.send('go');
    await vi.waitFor(() => expect(first.conversation.inFlight?.text).toBe('hm'));
    const store = await storeWith(first.conversation.log());
    await first.agent.close();
    const cutOff = one('invoke_agent');
    expect(cutOff.attributes['error.type']).toBe(cutOff.attributes['runchart.termination']);
    exporter.reset();
    const request = app.startSpan('request');
    const { conversation } = await context.with(trace.setSpan(context.active(), request), () =>
      bench({ replies: ['done'], plugins: [openTelemetry()], policies, store }),
    );
    await vi.waitFor(() => expect(conversation.status).toBe('idle'));
    const resumed = one('invoke_agent');
    expect(parentOf(resumed)).toBe(request.spanContext().spanId);
    expect(resumed.links.map(({ context: link }) => link.spanId)).toEqual([idOf(cutOff)]);
  });

  it('a followUp has the parent of its call, although its run begins later', async () => {
    const { conversation } = await traced({ replies: ['one', 'two'] });
    const request = app.startSpan('request');
    const run = conversation.send('go');
    context.with(trace.setSpan(context.active(), request), () => conversation.followUp('and then'));
    await run.result;
    await vi.waitFor(() => expect(named('invoke_agent').length).toBe(2));
    expect(named('invoke_agent').map(parentOf)).toEqual([undefined, request.spanContext().spanId]);
  });

  it('a new request is no link and has no parent of its own', async () => {
    const { conversation } = await traced({ replies: ['one', 'two'] });
    await conversation.send('go').result;
    await conversation.send('go').result;
    expect(named('invoke_agent').map((span) => [span.links.length, parentOf(span)])).toEqual([
      [0, undefined],
      [0, undefined],
    ]);
  });

  it('runs of sub-agents are children of the execution of their call', async () => {
    const spawn = call('c1', 'spawn_agents', {
      tasks: [
        { id: 'a', task: 'look' },
        { id: 'b', task: 'listen' },
      ],
    });
    const answer = [call('s', 'submit_result', { result: 'seen' })];
    const { conversation } = await traced({
      replies: [[spawn], answer, answer, 'done', 'done', 'done'],
      tools: [add, subAgents()],
    });
    await conversation.send('go').result;
    const spawned = one('execute_tool spawn_agents');
    const children = named('invoke_agent').filter((span) => span.attributes['gen_ai.conversation.id'] !== 'c');
    expect(children.map(parentOf)).toEqual([idOf(spawned), idOf(spawned)]);
  });
});

describe('contents', () => {
  const CONTENTS = /messages|instructions|arguments|result/;

  it('without `contents` no message, argument or result is recorded', async () => {
    const { conversation } = await traced({ replies: TWO_CALLS, tools: [add, fail], instructions: 'Be brief' });
    await conversation.send('1 + 2?').result;
    const names = spans().flatMap(({ attributes }) => Object.keys(attributes));
    expect(names.filter((name) => CONTENTS.test(name))).toEqual([]);
    expect(JSON.stringify(spans().map(({ attributes, events }) => [attributes, events]))).not.toMatch(
      /1 \+ 2|no such|brief/,
    );
  });

  it('with it they are, without secrets', async () => {
    const options = { replies: [[t('key'), ...(TWO_CALLS[0] ?? [])], 's3cret-value'], tools: [add, fail] };
    const { conversation } = await traced(
      { ...options, secrets: ['s3cret-value'], instructions: 'Be brief with s3cret-value' },
      { contents: true },
    );
    await conversation.send('s3cret-value').result;
    const [first, second] = named('chat scripted').map(({ attributes }) => attributes);
    const system = [{ type: 'text', content: 'Be brief with [redacted]' }];
    expect(JSON.parse(String(first?.['gen_ai.system_instructions']))).toEqual(system);
    expect(JSON.parse(String(first?.['gen_ai.output.messages']))).toMatchObject([
      {
        role: 'assistant',
        finish_reason: 'tool_call',
        parts: [{ type: 'text' }, { type: 'tool_call', id: 'c1' }, { name: 'fail' }],
      },
    ]);
    expect(JSON.parse(String(second?.['gen_ai.input.messages']))).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: '3' }] },
      { role: 'tool', parts: [{ response: 'no such thing' }] },
    ]);
    expect(one('execute_tool add').attributes).toMatchObject({
      'gen_ai.tool.call.arguments': '{"a":1,"b":2}',
      'gen_ai.tool.call.result': '3',
    });
    expect(JSON.stringify(spans().map(({ attributes }) => attributes))).not.toContain('s3cret');
  });
});

const byTool = <Point extends { attributes: Attributes }>(points: Point[] = []): Point[] =>
  points.sort((a, b) => (String(a.attributes['gen_ai.tool.name']) < String(b.attributes['gen_ai.tool.name']) ? -1 : 1));

describe('metrics', () => {
  it('tokens, durations and outcomes of calls', async () => {
    await reader.forceFlush();
    metricExporter.reset();
    const { conversation } = await traced({ replies: TWO_CALLS, tools: [add, fail] });
    await conversation.send('go').result;
    await reader.forceFlush();
    const points = Object.fromEntries(
      metricExporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics)
        .flatMap((scope) => scope.metrics)
        .map(({ descriptor, dataPoints }) => [
          descriptor.name,
          dataPoints.map(({ attributes, value }) => ({ attributes, value })),
        ]),
    );
    expect(points['gen_ai.client.token.usage']).toMatchObject([
      {
        attributes: { 'gen_ai.token.type': 'input', 'gen_ai.request.model': 'scripted' },
        value: { sum: 15, count: 2 },
      },
      { attributes: { 'gen_ai.token.type': 'output' }, value: { sum: 15 } },
    ]);
    expect(byTool(points['runchart.tool.outcomes'])).toMatchObject([
      { attributes: { 'gen_ai.tool.name': 'add', 'runchart.tool.outcome': 'succeeded' }, value: 1 },
      {
        attributes: { 'gen_ai.tool.name': 'fail', 'runchart.tool.outcome': 'failed', 'error.type': 'missing' },
        value: 1,
      },
    ]);
    const operations = points['gen_ai.client.operation.duration']?.map(
      ({ attributes }) => attributes['gen_ai.operation.name'],
    );
    expect(operations).toEqual(expect.arrayContaining(['chat', 'execute_tool', 'invoke_agent']));
  });
});

describe('the meter provider', () => {
  const provider = () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
    const meters = new MeterProvider({ readers: [reader] });
    const counted = async (): Promise<number> => {
      await reader.forceFlush();
      const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
      exporter.reset();
      return all.flatMap((scope) => scope.metrics).length;
    };
    return { meters, counted };
  };

  it('is that of the moment: one that is set after the agent was made, the next one, and none', async () => {
    onTestFinished(() => {
      metrics.disable();
      metrics.setGlobalMeterProvider(meters);
    });
    metrics.disable();
    const { conversation } = await traced({ replies: ['one', 'two', 'three', 'four'] });
    const [first, second] = [provider(), provider()];
    const counts: (readonly number[])[] = [];
    for (const current of [undefined, first, second, undefined]) {
      metrics.disable();
      if (current) metrics.setGlobalMeterProvider(current.meters);
      await conversation.send('go').result;
      counts.push([await first.counted(), await second.counted()]);
    }
    expect(counts).toEqual([
      [0, 0],
      [2, 0],
      [0, 2],
      [0, 0],
    ]);
  });
});

describe('names of providers and agents', () => {
  it('the provider is an attribute of model calls and runs, and the name and id of runs only', async () => {
    const spawn = call('c1', 'spawn_agents', { tasks: [{ id: 'a', task: 'look' }] });
    const submit = call('s', 'submit_result', { result: 'seen' });
    const model = scripted([[spawn], [submit], 'done', 'done'], { id: 'small', provider: 'openai' });
    const { conversation } = await traced(
      { model, tools: [add, subAgents()] },
      { agentName: 'librarian', agentId: 'agent-7' },
    );
    await conversation.send('go').result;
    const root = one('invoke_agent librarian');
    expect(root.attributes).toMatchObject({
      'gen_ai.provider.name': 'openai',
      'gen_ai.agent.name': 'librarian',
      'gen_ai.agent.id': 'agent-7',
      'gen_ai.conversation.id': 'c',
    });
    for (const chat of named('chat small')) expect(chat.attributes['gen_ai.provider.name']).toBe('openai');
    expect(Object.keys(one('execute_tool spawn_agents').attributes)).not.toContain('gen_ai.agent.name');
    // A sub-agent is another agent.
    expect(Object.keys(one('invoke_agent').attributes)).not.toContain('gen_ai.agent.name');
  });
});

describe('failures', () => {
  it('a tracer that throws changes nothing', async () => {
    const startSpan = vi.fn(() => {
      throw new Error('no span');
    });
    const { conversation } = await traced({ replies: TWO_CALLS, tools: [add, fail] }, { tracer: { startSpan } });
    const { termination, calls } = await conversation.send('go').result;
    expect([termination, calls.length, startSpan.mock.calls.length]).toEqual(['NaturalEnd', 2, 5]);
  });

  it('spans and a context manager that throw change nothing', async () => {
    const broken = (): never => {
      throw new Error('broken');
    };
    const span = {
      spanContext: () => ({ traceId: '', spanId: '', traceFlags: 0 }),
      setAttributes: broken,
      setStatus: broken,
      end: broken,
    };
    const withContext = vi.spyOn(context, 'with').mockImplementation(broken);
    const { conversation } = await traced(
      { replies: TWO_CALLS, tools: [add, fail] },
      { tracer: { startSpan: () => span } },
    );
    const { termination } = await conversation.send('go').result;
    expect(termination).toBe('NaturalEnd');
    expect(withContext).toHaveBeenCalled();
    withContext.mockRestore();
    expect(conversation.log().filter(({ type }) => type === 'extension' || type === 'diagnostic')).toEqual([]);
  });

  it('an invalid option, and a missing package, is a ConfigurationError', async () => {
    expect(() => openTelemetry({ tracer: {} })).toThrow(/tracer/);
    expect(() => openTelemetry({ content: true } as object)).toThrow(ConfigurationError);
    vi.resetModules();
    vi.doMock('@opentelemetry/api', () => {
      throw new Error('not found');
    });
    const missing = await import('../../src/otel/openTelemetry.ts');
    expect(() => missing.openTelemetry()).toThrow(
      'openTelemetry() needs @opentelemetry/api: npm install @opentelemetry/api',
    );
    vi.doUnmock('@opentelemetry/api');
    // The module that found no package must not stay for another file.
    vi.resetModules();
  });
});
