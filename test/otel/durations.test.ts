/** The values of the duration metric, compared with the time that really passed. */
import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import { openTelemetry } from '../../src/otel/openTelemetry.ts';
import { bench } from '../support/agentBench.ts';
import { call, scripted } from '../support/scriptedReplies.ts';

/** The work of the tool takes this long, in seconds. */
const WORK_S = 0.05;

it('durations of runs, model calls and tools are in seconds', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
  metrics.disable();
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  onTestFinished(() => metrics.disable());
  const work = defineTool({
    name: 'work',
    description: 'Works',
    parameters: z.object({}),
    // Busy, so that no timer decides how long it takes.
    execute: () => {
      const until = performance.now() + WORK_S * 1_000;
      while (performance.now() < until);
      return 'done';
    },
  });
  const model = scripted([[call('c1', 'work')], 'done']);
  const { conversation, agent } = await bench({ model, tools: [work], plugins: [openTelemetry()] });
  onTestFinished(() => agent.close());
  const since = performance.now();
  await conversation.send('go').result;
  const elapsedS = (performance.now() - since) / 1_000;
  await reader.forceFlush();
  const points = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap((scope) => scope.metrics)
    .filter(({ descriptor }) => descriptor.name === 'gen_ai.client.operation.duration')
    .flatMap((metric) => (metric.dataPointType === DataPointType.HISTOGRAM ? metric.dataPoints : []))
    .map(({ attributes, value }) => ({
      operation: attributes['gen_ai.operation.name'],
      most: value.max ?? Number.NaN,
    }));
  expect(points.map(({ operation }) => operation).sort()).toEqual(['chat', 'execute_tool', 'invoke_agent']);
  for (const { operation, most } of points) {
    // The clock of the facts has whole milliseconds.
    expect([operation, most <= elapsedS + 0.002]).toEqual([operation, true]);
    if (operation !== 'chat') expect([operation, most >= WORK_S * 0.9]).toEqual([operation, true]);
  }
});
