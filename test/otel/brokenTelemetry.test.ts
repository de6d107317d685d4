/** Exporters, processors, samplers and metrics that fail: no run changes. */
import { metrics } from '@opentelemetry/api';
import { BatchSpanProcessor, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { expect, it, onTestFinished, vi } from 'vitest';
import * as z from 'zod';
import { defineTool, toolResult } from '../../src/index.ts';
import { openTelemetry } from '../../src/otel/openTelemetry.ts';
import { type BenchOptions, bench } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

const parameters = z.object({});
const act = defineTool({ name: 'act', description: 'Acts', parameters, execute: () => 'done' });
const fail = defineTool({
  name: 'fail',
  description: 'Fails',
  parameters,
  execute: () => toolResult.error('no', 'missing'),
});
const ask = defineTool({
  ...{ name: 'ask', description: 'Asks a person', parameters },
  execute: (_, { decision }) => (decision ? 'thanks' : toolResult.pending({ reason: 'person' })),
});
const TWO_CALLS = [[call('c1', 'act'), call('c2', 'fail')], 'done'];
const traced = (options: BenchOptions, tracer: object) =>
  bench({ ...options, tools: [act, fail, ask], plugins: [openTelemetry({ tracer })] });

type Processor = Pick<SimpleSpanProcessor, 'onStart' | 'onEnd' | 'forceFlush' | 'shutdown'>;
const quiet = {
  onStart: () => undefined,
  onEnd: () => undefined,
  forceFlush: async () => {},
  shutdown: async () => {},
};
const broken = (): never => {
  throw new Error('broken');
};
const exports = (act: (...args: never[]) => unknown): Processor =>
  new SimpleSpanProcessor({ export: act as never, shutdown: async () => undefined });
it.each<[string, Processor]>([
  ['a processor that throws at the start of a span', { ...quiet, onStart: broken }],
  ['a processor that throws at its end', { ...quiet, onEnd: broken }],
  ['an exporter that throws', exports(broken)],
  [
    'an exporter that fails',
    exports((_: unknown, done: (result: object) => void) => done({ code: 1, error: new Error('broken') })),
  ],
  ['an exporter that never answers', exports(() => undefined)],
  ['a batch whose exporter throws', new BatchSpanProcessor({ export: broken, shutdown: async () => undefined })],
])('%s changes nothing in a run, its log and a later run', async (_, processor) => {
  const tracer = new NodeTracerProvider({ spanProcessors: [processor] }).getTracer('broken');
  const { conversation } = await traced({ replies: [...TWO_CALLS, [call('c3', 'ask')], 'thanks'] }, tracer);
  expect((await conversation.send('go').result).termination).toBe('NaturalEnd');
  expect((await conversation.send('again').result).termination).toBe('Suspended');
  await conversation.decide({ callId: 'c3', action: 'answer', payload: 'yes' });
  expect((await conversation.resume().result).text).toBe('thanks');
  expect(conversation.log().filter(({ type }) => type === 'diagnostic')).toEqual([]);
});

it('a sampler and a metric reader that throw change nothing', async () => {
  const sampler = {
    shouldSample: () => {
      throw new Error('broken');
    },
  };
  const tracer = new NodeTracerProvider({ sampler }).getTracer('broken');
  const meter = vi.spyOn(metrics, 'getMeterProvider').mockImplementation(() => {
    throw new Error('broken');
  });
  onTestFinished(() => meter.mockRestore());
  const { conversation } = await traced({ replies: TWO_CALLS }, tracer);
  const { termination, calls } = await conversation.send('go').result;
  expect([termination, calls.length]).toEqual(['NaturalEnd', 2]);
  expect(meter).toHaveBeenCalled();
});
