/** The span of a run while other runs are asked for and end without having begun. */
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { type Conversation, defineTool } from '../../src/index.ts';
import { openTelemetry } from '../../src/otel/openTelemetry.ts';
import { bench } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

it('a run has one span if a queued message is taken back between its tools', async () => {
  const exporter = new InMemorySpanExporter();
  const tracer = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer('own');
  const within: { act: ((conversation: Conversation) => unknown) | undefined } = { act: undefined };
  const act = defineTool({
    ...{ name: 'act', description: '', parameters: z.object({}) },
    execute: async () => void (await within.act?.(conversation)),
  });
  const { conversation } = await bench({
    ...{ tools: [act], replies: [[call('c1', 'act')], [call('c2', 'act')], 'done'] },
    plugins: [openTelemetry({ tracer })],
  });
  within.act = async (on) => {
    within.act = undefined;
    await on.send('later', { kind: 'followUp' }).cancel();
  };
  const { runId } = await conversation.send('go').result;
  const spans = exporter.getFinishedSpans();
  const runs = spans.filter(({ name }) => name === 'invoke_agent');
  expect(runs.map(({ attributes }) => attributes['runchart.run.id'])).toEqual([runId]);
  const parents = spans.filter(({ name }) => name !== 'invoke_agent').map((span) => span.parentSpanContext?.spanId);
  expect(parents).toEqual(parents.map(() => runs[0]?.spanContext().spanId));
  expect(parents).toHaveLength(5);
});
