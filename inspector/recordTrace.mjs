/**
 * Makes the picture of a trace for the docs (`npm run pictures`): one request whose call waits for approval, and which
 * another agent continues on the same store. Invariant: every bar is a span that an exporter received.
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { context, trace } from '@opentelemetry/api';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { z } from 'zod';
import { createAgent, defineTool, memoryStore } from '../dist/src/index.js';
import { openTelemetry } from '../dist/src/otel/openTelemetry.js';

const exporter = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
const shop = trace.getTracer('shop');

const CALLS = [
  ['search', '{"words":"charts"}'],
  ['send_mail', '{"to":"ada@example.org"}'],
];
const usage = { inputTokens: 412, outputTokens: 57 };
const model = {
  id: 'gpt-5-mini',
  provider: 'openai',
  async *stream({ messages }) {
    await wait(240);
    const calls = messages.length === 1 ? CALLS : [];
    if (calls.length === 0) yield { type: 'text-delta', text: 'It is done.' };
    for (const [index, [name, args]] of calls.entries())
      yield { type: 'tool-call', callId: `call_${index}`, name, args };
    yield { type: 'finish', reason: calls.length > 0 ? 'tool-calls' : 'stop', usage };
  },
};
const search = defineTool({
  ...{ name: 'search', description: 'Searches notes.', parameters: z.object({ words: z.string() }), readOnly: true },
  async execute() {
    const query = shop.startSpan('SELECT notes');
    await wait(90);
    query.end();
    await wait(30);
    return 'two notes';
  },
});
const sendMail = defineTool({
  ...{ name: 'send_mail', description: 'Sends a mail.', parameters: z.object({ to: z.string() }), needsApproval: true },
  async execute() {
    await wait(150);
    return 'sent';
  },
});

const store = memoryStore();
const makeAgent = () =>
  createAgent({ model, store, tools: [search, sendMail], plugins: [openTelemetry({ agentName: 'librarian' })] });

/** Acts within a span, as a server with tracing does. */
async function within(name, act) {
  const span = shop.startSpan(name);
  await context.with(trace.setSpan(context.active(), span), act);
  span.end();
}

const first = makeAgent();
// The first request of a program also loads files.
await first.run('Mail my notes about charts to Ada');
exporter.reset();
await within('POST /chat', async () => {
  const conversation = await first.open('c');
  await conversation.send('Mail my notes about charts to Ada').result;
});
await first.close();
const second = makeAgent();
await within('POST /chat/decisions', async () => {
  const conversation = await second.open('c');
  await conversation.decide({ callId: 'call_1', action: 'approve', by: 'ada' });
  await conversation.resume().result;
});
await second.close();

const msOf = ([seconds, nanoseconds]) => seconds * 1_000 + nanoseconds / 1_000_000;
const spans = exporter.getFinishedSpans();

/** The spans below a parent in the order of their start, each with its depth. */
function rowsBelow(parentId, depth) {
  return spans
    .filter((span) => span.parentSpanContext?.spanId === parentId)
    .sort((a, b) => msOf(a.startTime) - msOf(b.startTime))
    .flatMap((span) => [{ span, depth }, ...rowsBelow(span.spanContext().spanId, depth + 1)]);
}

const ROW = 27;
const NAMES = 300;
const WIDTH = 960;
const NOTES = 265;
const GAP_PX = 44;
const colours = [
  [/^invoke_agent/, 'run'],
  [/^chat/, 'model'],
  [/^execute_tool/, 'tool'],
];
const classOf = ({ name }) => colours.find(([pattern]) => pattern.test(name))?.[1] ?? 'other';
const escaped = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function noteOf({ attributes, startTime, endTime }) {
  const tokens = attributes['gen_ai.usage.input_tokens'];
  const parts = [
    `${Math.round(msOf(endTime) - msOf(startTime))} ms`,
    attributes['runchart.termination'] ?? attributes['runchart.tool.outcome'],
    tokens && `${tokens} + ${attributes['gen_ai.usage.output_tokens']} tokens`,
  ];
  return parts.filter(Boolean).join(' · ');
}

const roots = rowsBelow(undefined, 0);
const traceOf = ({ span }) => span.spanContext().traceId;
const traces = [...new Set(roots.map(traceOf))].map((id) => roots.filter((row) => traceOf(row) === id));
const longest = Math.max(...traces.map(([{ span }]) => msOf(span.endTime) - msOf(span.startTime)));
const pxPerMs = (WIDTH - NAMES - NOTES) / longest;
const parts = [];
const places = new Map();
let top = 24;
for (const [index, rows] of traces.entries()) {
  const since = msOf(rows[0].span.startTime);
  if (index > 0) {
    parts.push(`<text class="wait" x="${NAMES}" y="${top + 26}">a person approves, and another agent continues</text>`);
    top += GAP_PX;
  }
  for (const { span, depth } of rows) {
    const x = NAMES + (msOf(span.startTime) - since) * pxPerMs;
    const width = Math.max(3, (msOf(span.endTime) - msOf(span.startTime)) * pxPerMs);
    places.set(span.spanContext().spanId, { x, y: top });
    parts.push(
      `<text x="${16 + depth * 18}" y="${top + 17}">${escaped(span.name)}</text>`,
      `<rect class="${classOf(span)}" x="${x.toFixed(1)}" y="${top + 5}" width="${width.toFixed(1)}" height="16" rx="3"/>`,
      `<text class="note" x="${(x + width + 8).toFixed(1)}" y="${top + 17}">${escaped(noteOf(span))}</text>`,
    );
    for (const { context: linked } of span.links) {
      const from = places.get(linked.spanId);
      if (!from) continue;
      const [start, end] = [from.y + 13, top + 13];
      parts.push(
        `<path d="M${(from.x - 2).toFixed(1)} ${start}H${NAMES - 12}V${end}H${(x - 1).toFixed(1)}" marker-end="url(#end)"/>`,
        `<text class="note" x="${NAMES - 20}" y="${end - ROW - 16}" text-anchor="end">link</text>`,
      );
    }
    top += ROW;
  }
}
const height = top + 16;
const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="The spans of a request that waits for approval, in two traces">
<style>
svg{background:#fff;font:500 13px Inter,system-ui,sans-serif}text{fill:#16181c}.note,.wait{fill:#666d78;font-size:12px}.wait{font-style:italic}
.run{fill:#4663d9}.model{fill:#9a63d6}.tool{fill:#2b9a72}.other{fill:#a9b0bc}path{fill:none;stroke:#4663d9;stroke-dasharray:4 3}#end path{fill:#4663d9;stroke:none}
@media(prefers-color-scheme:dark){svg{background:#0d0e10}text{fill:#eceef1}.note,.wait{fill:#a9aeb8}.other{fill:#667080}}
</style>
<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
${parts.join('\n')}
</svg>
`;
writeFileSync(fileURLToPath(new URL('../docs/pictures/trace.svg', import.meta.url)), svg);
console.log('docs/pictures: trace.svg');
