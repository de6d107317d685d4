/** Traces: the spans of a run with a tool, printed by an exporter of its own. */
// #region setup
import { context, trace } from '@opentelemetry/api';
import { NodeTracerProvider, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { createAgent, defineTool } from 'runchart';
import { openTelemetry } from 'runchart/otel';
import { scriptedModel } from 'runchart/testing';
import * as z from 'zod';

// Replace this by an exporter of OpenTelemetry, for example OTLPTraceExporter.
const spans: ReadableSpan[] = [];
const exporter = {
  export(batch: ReadableSpan[], done: (result: { code: number }) => void) {
    spans.push(...batch);
    done({ code: 0 });
  },
  shutdown: async () => {},
};

// A script in place of a real model.
const model = scriptedModel([
  {
    parts: [
      { type: 'tool-call', callId: 'c1', name: 'stock', args: '{"item":"tea"}' },
      { type: 'finish', reason: 'tool-calls', usage: { inputTokens: 40, outputTokens: 12 } },
    ],
  },
  'Seven packets are left.',
]);
// #endregion

// #region otel
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
const shop = trace.getTracer('shop');

const stock = defineTool({
  name: 'stock',
  description: 'Counts an item.',
  parameters: z.object({ item: z.string() }),
  // A span of your own, or of an instrumented client, is a child of the tool's span.
  execute({ item }) {
    const query = shop.startSpan('SELECT stock');
    query.end();
    return `${item}: 7`;
  },
});

const agent = createAgent({ model, tools: [stock], plugins: [openTelemetry()] });
const request = shop.startSpan('POST /chat');
await context.with(trace.setSpan(context.active(), request), () => agent.run('How much tea is left?'));
request.end();
// #endregion

// #region show
const show = (parent: string | undefined, indent: string): void => {
  const children = spans.filter((span) => span.parentSpanContext?.spanId === parent);
  for (const span of children.sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1])) {
    const tokens = span.attributes['gen_ai.usage.input_tokens'];
    console.log(`${indent}${span.name}${tokens ? ` (${tokens} input tokens)` : ''}`);
    show(span.spanContext().spanId, `${indent}  `);
  }
};
show(undefined, '');
await agent.close();
// #endregion
