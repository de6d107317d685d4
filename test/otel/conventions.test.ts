/**
 * The names in spans and metrics beside the constants of `@opentelemetry/semantic-conventions`. Rule: a name that is not Runchart's own
 * is one of the package, and the package names no replacement for it.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import * as conventions from '@opentelemetry/semantic-conventions/incubating';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool } from '../../src/index.ts';
import { openTelemetry } from '../../src/otel/openTelemetry.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { call, finish, scripted, t } from '../support/scriptedReplies.ts';

const constants: ReadonlyMap<string, string> = new Map(
  Object.entries(conventions as Record<string, unknown>).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value]] : [],
  ),
);
/** The constants of a kind that have this value. */
const named = (kind: string, value: string): string[] =>
  [...constants].filter(([name, each]) => name.startsWith(kind) && each === value).map(([name]) => name);

const folder = dirname(createRequire(import.meta.url).resolve('@opentelemetry/semantic-conventions'));
const declared = ['stable', 'experimental']
  .flatMap((level) => ['attributes', 'metrics'].map((kind) => join(folder, `${level}_${kind}.d.mts`)))
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n');
/** Whether the comment of a constant names a replacement. A move to another repository is not a replacement. */
function isReplaced(constant: string): boolean {
  const [before = ''] = declared.split(`declare const ${constant}:`);
  const comment = before.slice(before.lastIndexOf('/**'));
  return /@deprecated (?!Moved to the)/.test(comment);
}

const spanExporter = new InMemorySpanExporter();
const metricExporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
let data: MetricData[] = [];
const spans = () => spanExporter.getFinishedSpans();

/** A run whose spans have every attribute that the library sets. */
beforeAll(async () => {
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] });
  const tracer = provider.getTracer('conventions');
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 1_000_000 });
  // Another file of this process may have set one.
  metrics.disable();
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  const add = defineTool({
    name: 'add',
    description: 'Adds',
    parameters: z.object({ a: z.number() }),
    execute: ({ a }) => a + 1,
  });
  const usage = { inputTokens: 3, outputTokens: 9, reasoningTokens: 4 };
  const replies = [
    [t('hm'), call('c1', 'add', { a: 1 }), call('c2', 'add', { a: 'x' }), finish('tool-calls', 5)],
    [t('{"sum":2}'), { type: 'finish' as const, reason: 'stop' as const, usage }],
    new Error('out of order'),
  ];
  const options = { id: 'small', provider: 'openai', prices: { input: 1, output: 1 } };
  const model = { ...scripted(replies, options), nativeOutput: true };
  const agent = createAgent({
    ...{ model, tools: [add], instructions: 'Be brief', output: z.object({ sum: z.number() }) },
    plugins: [openTelemetry({ tracer, contents: true, agentName: 'adder', agentId: 'a1' })],
    policies: { modelRetry: { attempts: 1 } },
  });
  const settings = { temperature: 0.5, topP: 0.9, maxOutputTokens: 100 };
  const image = { type: 'image' as const, mediaType: 'image/png', data: base64(dot) };
  const conversation = await agent.open();
  await conversation.send([{ type: 'text', text: '1 + 1?' }, image], { settings }).result;
  await conversation.send('again').result;
  await agent.close();
  await reader.forceFlush();
  data = metricExporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap((scope) => scope.metrics);
});

afterAll(() => metrics.disable());

const attributesOf = (items: readonly { attributes: object }[]): string[] => [
  ...new Set(items.flatMap(({ attributes }) => Object.keys(attributes))),
];

describe('names of the GenAI conventions', () => {
  it('every attribute of spans and metrics is in the conventions, or begins with runchart', () => {
    const names = [
      ...attributesOf(spans()),
      ...attributesOf(data.flatMap<{ attributes: object }>((m) => m.dataPoints)),
    ];
    expect(names.length).toBeGreaterThan(25);
    const foreign = names.filter((name) => !name.startsWith('runchart.'));
    expect(foreign.filter((name) => named('ATTR_', name).length === 0)).toEqual([]);
    expect(foreign.filter((name) => named('ATTR_', name).some(isReplaced))).toEqual([]);
  });

  it('a replaced name would be noticed', () => {
    expect(named('ATTR_', 'gen_ai.system').map(isReplaced)).toEqual([true]);
    expect(named('ATTR_', 'gen_ai.usage.prompt_tokens').map(isReplaced)).toEqual([true]);
  });

  it('every metric is in the conventions, or begins with runchart, with the unit and the boundaries that they require', () => {
    const own = data.filter(({ descriptor }) => !descriptor.name.startsWith('runchart.'));
    expect(own.filter(({ descriptor }) => named('METRIC_', descriptor.name).length === 0)).toEqual([]);
    const shown = own.map(({ descriptor, dataPoints }) => {
      const [point] = dataPoints as { value: { buckets: { boundaries: number[] } } }[];
      const boundaries = point?.value.buckets.boundaries ?? [];
      return [descriptor.name, descriptor.unit, boundaries.length, boundaries[0], boundaries.at(-1)];
    });
    expect(shown.sort()).toEqual([
      ['gen_ai.client.operation.duration', 's', 14, 0.01, 81.92],
      ['gen_ai.client.token.usage', '{token}', 14, 1, 67_108_864],
    ]);
  });

  it.each([
    ['gen_ai.operation.name', 'GEN_AI_OPERATION_NAME_VALUE_'],
    ['gen_ai.provider.name', 'GEN_AI_PROVIDER_NAME_VALUE_'],
    ['gen_ai.output.type', 'GEN_AI_OUTPUT_TYPE_VALUE_'],
  ])('the values of %s are those of the conventions', (attribute, kind) => {
    const values = spans().flatMap(({ attributes }) =>
      attribute in attributes ? [String(attributes[attribute])] : [],
    );
    expect(values.length).toBeGreaterThan(0);
    expect(values.filter((value) => named(kind, value).length === 0)).toEqual([]);
  });

  it('spans are named by their operation and what it is about', () => {
    expect([...new Set(spans().map(({ name }) => name))].sort()).toEqual([
      'chat small',
      'execute_tool add',
      'invoke_agent adder',
    ]);
  });

  it('a model call has the format and the settings of its request, and its reasoning tokens', () => {
    const [first, second] = spans().filter(({ name }) => name === 'chat small');
    expect(first?.attributes).toMatchObject({
      'gen_ai.request.stream': true,
      'gen_ai.output.type': 'json',
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.top_p': 0.9,
      'gen_ai.request.max_tokens': 100,
    });
    const [tool] = JSON.parse(String(first?.attributes['gen_ai.tool.definitions'])) as object[];
    expect(tool).toMatchObject({ type: 'function', name: 'add', description: 'Adds' });
    expect(first?.attributes).not.toHaveProperty('gen_ai.usage.reasoning.output_tokens');
    expect(second?.attributes).toMatchObject({ 'gen_ai.usage.reasoning.output_tokens': 4 });
  });

  it('a run has the model of its last call', () => {
    const [run] = spans().filter(({ name }) => name.startsWith('invoke_agent'));
    expect(run?.attributes).toMatchObject({ 'gen_ai.request.model': 'small', 'gen_ai.provider.name': 'openai' });
  });
});
