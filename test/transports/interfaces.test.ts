/** Runs as AG-UI and as UI messages: recorded with and without live signals, read by the protocols' own clients. */
import { verifyEvents } from '@ag-ui/client';
import { EventSchemas } from '@ag-ui/core/schemas';
import {
  getToolName,
  isToolUIPart,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
} from 'ai';
import { from, lastValueFrom, Subject, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Live, type LogEntry, ModelError, type Run } from '../../src/index.ts';
import { toAgUi, toUiMessages } from '../../src/transports/index.ts';
import { type Bench, type BenchOptions, bench } from '../support/agentBench.ts';
import { asks, boom, echoTool } from '../support/scenarioTools.ts';
import { call, finish, t } from '../support/scriptedReplies.ts';

type Item = LogEntry | Live;
const items = async (run: Run): Promise<Item[]> => {
  const seen: Item[] = [];
  for await (const item of run) seen.push(item);
  return seen;
};
const eventsOf = async (source: readonly Item[]) =>
  (await lastValueFrom(toAgUi(from(source)).pipe(toArray<object>()))) as { type: string; [key: string]: unknown }[];
const chunksOf = async (source: readonly Item[]) =>
  (await lastValueFrom(toUiMessages(from(source)).pipe(toArray<object>()))) as UIMessageChunk[];

/** The message that the AI SDK makes of chunks, starting from an earlier message if there is one. */
async function messageOf(chunks: readonly UIMessageChunk[], message?: UIMessage): Promise<UIMessage> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  let last: UIMessage | undefined;
  for await (const next of readUIMessageStream({ stream, terminateOnError: true, ...(message && { message }) }))
    last = next;
  return last as UIMessage;
}
const partsOf = ({ parts }: UIMessage): string[] =>
  parts.map((part) => {
    if (part.type === 'text' || part.type === 'reasoning') return `${part.type} ${part.text}`;
    if (isToolUIPart(part)) return `${getToolName(part)} ${part.state}`;
    return part.type;
  });

const thinks = (text: string) => ({ type: 'reasoning-delta' as const, text });
const STORIES: readonly (readonly [string, BenchOptions])[] = [
  ['an answer', { replies: [[t('Hel'), t('lo'), finish('stop', 3)]] }],
  [
    'thinking, a call and an answer',
    {
      replies: [[thinks('which'), thinks('?'), t('I look.'), call('c1', 'echo', { m: 'a' })], 'Done.'],
      tools: [echoTool().tool],
    },
  ],
  [
    'calls without text',
    { replies: [[call('c1', 'echo', { m: 'a' }), call('c2', 'boom')], 'Done.'], tools: [echoTool().tool, boom] },
  ],
  [
    'text after a call',
    { replies: [[t('One.'), call('c1', 'echo', { m: 'a' }), t('Two.')], 'Done.'], tools: [echoTool().tool] },
  ],
  ['arguments that are not JSON', { replies: [[call('c1', 'echo', '{bad')], 'Sorry.'], tools: [echoTool().tool] }],
  ['an empty reply', { replies: [[t('')], 'Done.'] }],
  ['a model that fails', { replies: [new ModelError({ code: 'auth', retryable: false })] }],
  [
    'a call that waits',
    { replies: [[t('May I?'), call('c1', 'ask', { m: '' })]], plugins: [asks().plugin], tools: [echoTool('ask').tool] },
  ],
];

async function recorded(options: BenchOptions): Promise<{ on: Bench; live: Item[]; stored: readonly LogEntry[] }> {
  const on = await bench(options);
  const live = await items(on.conversation.send('hi'));
  return { on, live, stored: on.conversation.log() };
}

describe.each(STORIES)('%s', (_, options) => {
  it('it is a stream that AG-UI accepts, with live signals and without', async () => {
    const { live, stored } = await recorded(options);
    for (const source of [live, stored]) {
      const events = await eventsOf(source);
      for (const event of events) EventSchemas.parse(event);
      await lastValueFrom(from(events).pipe(verifyEvents(false) as never, toArray()));
      expect(events[0]).toMatchObject({ type: 'RUN_STARTED', threadId: 'c' });
      expect(events.at(-1)?.type).toMatch(/^RUN_(FINISHED|ERROR)$/);
    }
  });

  it('it is a stream of chunks that the AI SDK accepts, and the same message with live signals and without', async () => {
    const { live, stored } = await recorded(options);
    const messages: string[][] = [];
    for (const source of [live, stored]) {
      const chunks = await chunksOf(source);
      const { validate } = uiMessageChunkSchema();
      for (const chunk of chunks) expect(await validate?.(chunk)).toMatchObject({ success: true });
      const message = await messageOf(chunks.filter(({ type }) => type !== 'error'));
      messages.push(partsOf(message).filter((part) => !part.startsWith('data-runchart-dropped')));
    }
    if (!options.replies?.flat().some((part) => (part as { text?: string }).text === 'Two.')) {
      expect(messages[0]).toEqual(messages[1]);
    }
  });
});

describe('AG-UI', () => {
  it('each delta appears once, in its message, and a call in the message that makes it', async () => {
    const { live } = await recorded(STORIES[1]?.[1] ?? {});
    expect(
      (await eventsOf(live)).map(({ type, delta, toolCallId, parentMessageId, stepName, messageId }) =>
        [type, stepName ?? delta ?? toolCallId, parentMessageId ?? messageId]
          .filter((word) => word !== undefined)
          .join(' ')
          .replaceAll(/run_\w+/g, 'r')
          .replaceAll(/b\d+i1/g, 'm'),
      ),
    ).toMatchInlineSnapshot(`
      [
        "RUN_STARTED",
        "TEXT_MESSAGE_START m",
        "TEXT_MESSAGE_CONTENT hi m",
        "TEXT_MESSAGE_END m",
        "STEP_STARTED turn 1",
        "REASONING_START r/1",
        "REASONING_MESSAGE_START r/1",
        "REASONING_MESSAGE_CONTENT which r/1",
        "REASONING_MESSAGE_CONTENT ? r/1",
        "REASONING_MESSAGE_END r/1",
        "REASONING_END r/1",
        "TEXT_MESSAGE_START r/2",
        "TEXT_MESSAGE_CONTENT I look. r/2",
        "TEXT_MESSAGE_END r/2",
        "TOOL_CALL_START c1 r/2",
        "TOOL_CALL_ARGS {"m":"a"}",
        "TOOL_CALL_END c1",
        "CUSTOM",
        "CUSTOM",
        "TOOL_CALL_RESULT c1 c1/result",
        "STEP_FINISHED turn 1",
        "STEP_STARTED turn 2",
        "TEXT_MESSAGE_START r/3",
        "TEXT_MESSAGE_CONTENT Done. r/3",
        "TEXT_MESSAGE_END r/3",
        "STEP_FINISHED turn 2",
        "RUN_FINISHED",
      ]
    `);
  });

  it('a run that waits ends in an interrupt with the call, its reason and its question', async () => {
    const { live } = await recorded({
      ...STORIES[7]?.[1],
      plugins: [asks('ask', { reason: 'pay?', payload: { euros: 9 } }).plugin],
    });
    expect((await eventsOf(live)).at(-1)).toEqual({
      type: 'RUN_FINISHED',
      threadId: 'c',
      runId: expect.any(String),
      outcome: {
        type: 'interrupt',
        interrupts: [
          { id: '1/c1', reason: 'tool_call', message: 'pay?', toolCallId: 'c1', metadata: { payload: { euros: 9 } } },
        ],
      },
    });
  });

  it('a cancelled run is cancelled, and a failed run is an error with its cause', async () => {
    const { live } = await recorded(STORIES[6]?.[1] ?? {});
    expect((await eventsOf(live)).at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'model' });
    const on = await bench({ replies: [[t('a')]] });
    const stop = new AbortController();
    stop.abort();
    expect((await eventsOf(await items(on.conversation.send('hi', { signal: stop.signal })))).at(-1)).toMatchObject({
      type: 'RUN_FINISHED',
      outcome: { type: 'cancelled' },
    });
  });
});

describe('the streamed text of a failed attempt', () => {
  const replies = [
    async function* () {
      yield t('Hal');
      throw new ModelError({ code: 'network' });
    },
    [t('Hello')],
  ];

  it('it is marked as dropped, and the following text is a separate part', async () => {
    const on = await bench({ replies });
    const run = on.conversation.send('hi');
    const seen = items(run);
    await on.clock.until(run.result, 10_000);
    const source = await seen;
    const dropped = (await eventsOf(source)).find(({ name }) => name === 'runchart.dropped');
    expect(dropped?.value).toEqual({ messageIds: [`${run.id}/1`] });
    expect(partsOf(await messageOf(await chunksOf(source)))).toEqual([
      'step-start',
      'text Hal',
      'data-runchart-dropped',
      'text Hello',
    ]);
  });
});

describe('UI messages', () => {
  it('a waiting call asks for approval, and the next run continues the same message', async () => {
    const { on, live } = await recorded(STORIES[7]?.[1] ?? {});
    const asked = await messageOf(await chunksOf(live));
    expect(asked.parts.find(isToolUIPart)).toMatchObject({
      state: 'approval-requested',
      approval: { id: '1/c1' },
      toolCallId: 'c1',
    });
    await on.conversation.decide({ callId: 'c1', action: 'deny' });
    const resumed = await items(on.conversation.resume());
    const message = await messageOf(
      await chunksOf(resumed).then((chunks) => chunks.filter(({ type }) => type !== 'error')),
      asked,
    );
    expect(message.id).toBe(asked.id);
    expect(partsOf(message)).toContain('ask output-denied');
  });
});

describe('the metadata of a message', () => {
  const used = { usage: expect.objectContaining({ outputTokens: 3 }), costUsd: null };
  it.each([
    ['a run that ends', [[t('a'), finish('stop', 3)]]],
    ['a run that waits for an approval', [[call('c1', 'ask', { m: 'a' }), finish('tool-calls', 3)]]],
  ])('has what %s has used so far', async (_, replies) => {
    const { live } = await recorded({ replies, tools: [echoTool('ask').tool], plugins: [asks().plugin] });
    const metadata = (await chunksOf(live)).filter(({ type }) => type === 'message-metadata');
    expect(metadata.at(-1)).toEqual({ type: 'message-metadata', messageMetadata: used });
  });
});

describe('a fold with hand-written input', () => {
  let seq = 0;
  const entry = (fields: object): Item => {
    seq += 1;
    return { seq, at: 0, conversationId: 'c', runId: 'r', ...fields } as LogEntry;
  };
  const began = (): Item => entry({ type: 'run-started' });
  const assistantEntry = (text: string): Item => entry({ type: 'agent-output', item: { type: 'assistant', text } });
  const replied = (): Item => entry({ type: 'model-reply' });
  const stopped = (reason = 'completed'): Item => entry({ type: 'run-stop', reason });
  const delta = (text: string, path?: string[]): Item => ({
    type: 'text-delta',
    runId: 'r',
    text,
    ...(path && { path }),
  });
  const pageEvents = async (...source: Item[]): Promise<string[]> =>
    (await eventsOf(source)).map(({ type, delta: text, messageId, value }) =>
      [type, text ?? (value ? JSON.stringify(value) : messageId)].filter(Boolean).join(' '),
    );
  const textsOf = async (...source: Item[]) =>
    (await pageEvents(...source)).filter((line) => /CONTENT|CUSTOM/.test(line));

  it('a text that was streamed in pieces and is durable appears once', async () => {
    expect(await textsOf(began(), delta('Hel'), delta('lo'), assistantEntry('Hello'), replied(), stopped())).toEqual([
      'TEXT_MESSAGE_CONTENT Hel',
      'TEXT_MESSAGE_CONTENT lo',
    ]);
  });

  it('a partly streamed text is completed', async () => {
    expect((await textsOf(began(), delta('Hel'), assistantEntry('Hello'), replied(), stopped())).at(-1)).toBe(
      'TEXT_MESSAGE_CONTENT lo',
    );
  });

  it('a streamed text that is durable in another form is dropped, and sent in the durable form', async () => {
    expect(await textsOf(began(), delta('key-123'), assistantEntry('[redacted]'), replied(), stopped())).toEqual([
      'TEXT_MESSAGE_CONTENT key-123',
      'CUSTOM {"messageIds":["r/1"]}',
      'TEXT_MESSAGE_CONTENT [redacted]',
    ]);
  });

  it('a streamed text that never became durable is dropped with the end of its run', async () => {
    expect((await textsOf(began(), delta('I th'), stopped('interrupted'))).at(-1)).toBe(
      'CUSTOM {"messageIds":["r/1"]}',
    );
  });

  it('streams of a sub-agent, and those outside of a run, are ignored', async () => {
    expect(await pageEvents(delta('early'), began(), delta('within', ['c1']), stopped(), delta('late'))).toEqual([
      'RUN_STARTED',
      'RUN_FINISHED',
    ]);
  });

  it.each([
    ['a call that is cancelled', [stopped('interrupted')], 'cancelled'],
    ['a result', [], 'success'],
  ])('%s outside of a run is sent in a run around it, after its append is complete', (_, rest, outcome) => {
    const source = new Subject<Item>();
    const events: { type: string; outcome?: { type: string } }[] = [];
    toAgUi(source).subscribe((event) => void events.push(event as { type: string }));
    const suspended = entry({ type: 'tool-suspended', callId: 'a', suspension: 1, reason: 'pay?' });
    for (const item of [began(), suspended, entry({ type: 'run-suspended', waiting: ['a'] })]) source.next(item);
    const before = events.splice(0).length;
    source.next(entry({ type: 'tool-result', callId: 'a', outcome: 'cancelled', content: [] }));
    for (const item of [...rest, entry({ type: 'checkpoint', boundary: 'RunFinished' })]) source.next(item);
    expect(before).toBeGreaterThan(0);
    expect(events.map(({ type }) => type)).toEqual(['RUN_STARTED', 'TOOL_CALL_RESULT', 'RUN_FINISHED']);
    expect(events.at(-1)?.outcome?.type).toBe(outcome);
  });

  it('a log in which the model fails while a call waits ends with the error and without an interrupt, after an event for the call', async () => {
    const { conversation } = await bench({
      tools: [echoTool('ask').tool, echoTool('echo').tool],
      plugins: [asks().plugin],
      policies: { onPartialSuspend: 'continue' },
      replies: [
        [call('a', 'ask', { m: '' }), call('b', 'echo', { m: '' })],
        new ModelError({ code: 'auth', retryable: false }),
      ],
    });
    expect((await conversation.send('go').result).termination).toBe('Error');
    const log = conversation.log();
    expect(log.some((entry) => entry.type === 'tool-suspended' && entry.callId === 'a')).toBe(true);
    const events = await eventsOf(log);
    await lastValueFrom(from(events).pipe(verifyEvents(false) as never, toArray()));
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'model' });
    expect(events.filter(({ name }) => name === 'runchart.tool-suspended')).toMatchObject([
      { value: { toolCallId: 'a' } },
    ]);
    expect(events.filter(({ type }) => type === 'RUN_FINISHED')).toEqual([]);
  });

  it('a call with a result no longer waits', async () => {
    const suspended = (callId: string): Item =>
      entry({ type: 'tool-suspended', callId, suspension: 1, reason: 'pay?' });
    const ended = entry({ type: 'tool-result', callId: 'a', outcome: 'failed', content: [] });
    const waits = entry({ type: 'run-suspended', waiting: ['b'] });
    const last = (await eventsOf([began(), suspended('a'), suspended('b'), ended, waits])).at(-1);
    expect(last).toMatchObject({ outcome: { interrupts: [{ id: '1/b' }] } });
  });

  it.each([
    ['succeeded', undefined],
    ['failed', undefined],
    ['failed', 'denied'],
    ['cancelled', undefined],
    ['unknown', undefined],
  ])("a sub-agent's calls that wait end as the call that they are within: %s, code %s", async (outcome, code) => {
    const item = { type: 'tool-call', callId: 'p', name: 'spawn', args: {} };
    const waiting = ['x', 'y'].map((callId) => ({ calls: [callId], pending: [{ callId, name: 'ask', args: {} }] }));
    const chunks = await chunksOf([
      began(),
      entry({ type: 'agent-output', item }),
      replied(),
      entry({ type: 'sub-agent', callId: 'p', child: 'k', phase: 'started' }),
      entry({ type: 'tool-suspended', callId: 'p', suspension: 1, reason: 'sub-agent', payload: { waiting } }),
      entry({ type: 'tool-result', callId: 'p', outcome, content: [], ...(code !== undefined && { code }) }),
      stopped(),
    ]);
    const ends = chunks.flatMap((chunk) => ('toolCallId' in chunk && /output/.test(chunk.type) ? [chunk] : []));
    expect(ends.map(({ toolCallId }) => toolCallId)).toEqual(['x', 'y', 'p']);
    expect(new Set(ends.map(({ type }) => type)).size).toBe(1);
  });
});
