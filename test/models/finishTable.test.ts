/**
 * Tests each finish reason of a provider in an agent. Invariant: one table, written by hand, is valid for all
 * adapters.
 */
import { describe, expect, it } from 'vitest';
import { createAgent, type LogEntry, type Model, type RunResult } from '../../src/index.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { VirtualClock } from '../support/virtualClock.ts';
import { callDelta, DONE, delta, finished, frame, modelOf, served, textDelta } from './scriptedFetch.ts';

const ENDS = [
  'stop',
  'tool calls',
  'length',
  'content filter',
  'pause',
  'error',
  'a word nobody knows',
  'no word',
] as const;
type End = (typeof ENDS)[number];
const CONTENTS = [
  'nothing',
  'spaces',
  'reasoning',
  'text',
  'a call',
  'text and two calls',
  'a call without its end',
  'a refusal',
] as const;
type Content = (typeof CONTENTS)[number];

const ARGS = '{"m":"a"}';
const HALF = '{"m":"a';

type Chunk = ReturnType<typeof delta>;
const CHUNKS: { [content in Content]: readonly Chunk[] } = {
  nothing: [delta({ role: 'assistant' })],
  spaces: [textDelta(' \n')],
  reasoning: [delta({ reasoning_content: 'hm' })],
  text: [textDelta('hal'), textDelta('lo')],
  'a call': [callDelta({ index: 0, id: 'c1', function: { name: 'echo', arguments: ARGS } })],
  'text and two calls': [
    textDelta('first'),
    callDelta({ index: 0, id: 'c1', function: { name: 'echo', arguments: ARGS } }),
    callDelta({ index: 1, id: 'c2', function: { name: 'echo', arguments: ARGS } }),
  ],
  'a call without its end': [callDelta({ index: 0, id: 'c1', function: { name: 'echo', arguments: HALF } })],
  'a refusal': [delta({ refusal: 'I will not' })],
};
/** The words of servers that speak chat completions, in any case of letters. */
const SYNONYMS: readonly (readonly [end: End, words: readonly string[]])[] = [
  ['stop', ['stop', 'end_turn', 'stop_sequence', 'eos', 'eos_token', 'STOP']],
  ['tool calls', ['tool_calls', 'tool_use', 'function_call']],
  ['length', ['length', 'max_tokens', 'model_length', 'MAX_TOKENS']],
  ['content filter', ['content_filter', 'safety', 'recitation', 'SAFETY']],
  ['pause', ['pause_turn']],
  ['error', ['error', 'insufficient_system_resource']],
];
const WORDS: { [end in End]: string | undefined } = {
  stop: 'stop',
  'tool calls': 'tool_calls',
  length: 'length',
  'content filter': 'content_filter',
  pause: 'pause_turn',
  error: 'error',
  'a word nobody knows': 'tired',
  'no word': undefined,
};

function overTheWire(content: Content, word: string | undefined): Model {
  let calls = 0;
  return modelOf(() => {
    calls += 1;
    if (calls > 1) return served([frame(textDelta('done'), finished('stop')) + DONE]);
    return served([frame(...CHUNKS[content], ...(word === undefined ? [] : [finished(word)])) + DONE]);
  });
}

type Part = { type: string; [field: string]: unknown };
const words = (type: 'text' | 'reasoning', text: string): Part[] => [
  { type: `${type}-start`, id: type },
  { type: `${type}-delta`, id: type, delta: text },
  { type: `${type}-end`, id: type },
];
const sdkCall = (toolCallId: string): Part => ({ type: 'tool-call', toolCallId, toolName: 'echo', input: ARGS });
const PARTS: { [content in Exclude<Content, 'a refusal'>]: readonly Part[] } = {
  nothing: [],
  spaces: words('text', ' \n'),
  reasoning: words('reasoning', 'hm'),
  text: words('text', 'hallo'),
  'a call': [sdkCall('c1')],
  'text and two calls': [...words('text', 'first'), sdkCall('c1'), sdkCall('c2')],
  'a call without its end': [
    { type: 'tool-input-start', id: 'c1', toolName: 'echo' },
    { type: 'tool-input-delta', id: 'c1', delta: HALF },
  ],
};
const UNIFIED: { [end in End]: { unified: string; raw: string } | undefined } = {
  stop: { unified: 'stop', raw: 'end_turn' },
  'tool calls': { unified: 'tool-calls', raw: 'tool_use' },
  length: { unified: 'length', raw: 'max_tokens' },
  'content filter': { unified: 'content-filter', raw: 'refusal' },
  pause: { unified: 'other', raw: 'pause_turn' },
  error: { unified: 'error', raw: 'error' },
  'a word nobody knows': { unified: 'other', raw: 'tired' },
  'no word': undefined,
};

function byTheSdk(content: Exclude<Content, 'a refusal'>, end: End): Model {
  let calls = 0;
  const done = [...words('text', 'done'), { type: 'finish', finishReason: UNIFIED.stop, usage: {} }];
  const doStream = async (): Promise<{ stream: ReadableStream }> => {
    calls += 1;
    const finishReason = UNIFIED[end];
    const first = [...PARTS[content], ...(finishReason ? [{ type: 'finish', finishReason, usage: {} }] : [])];
    const stream = new ReadableStream({
      start(controller) {
        for (const part of calls > 1 ? done : first) controller.enqueue(part);
        controller.close();
      },
    });
    return { stream };
  };
  const fields = { specificationVersion: 'v3' as const, provider: 'acme.chat', modelId: 'm-1', supportedUrls: {} };
  return aiSdkModel({ ...fields, doStream } as never);
}

/** The outcome of the first reply. */
type Fate =
  | 'the answer'
  | 'the answer, a refusal'
  | 'its calls ran'
  | 'its call was not run'
  | 'no reply: the model is asked again, with the reason'
  | 'not the end: the model is asked again'
  | 'an answer that is cut off'
  | 'the attempt failed, and is made again'
  | 'the run failed';

function fateOf({ termination, cause }: RunResult, log: readonly LogEntry[], ran: number): string {
  const of = <T extends LogEntry['type']>(type: T) =>
    log.filter((entry): entry is Extract<LogEntry, { type: T }> => entry.type === type);
  if (of('model-retry').length > 0) return 'the attempt failed, and is made again';
  if (termination === 'Error') return `the run failed`;
  if (termination === 'Stopped') return cause === 'max_tokens' ? 'an answer that is cut off' : `stopped: ${cause}`;
  if (of('tool-result').some(({ outcome }) => outcome === 'failed'))
    return ran === 0 ? 'its call was not run' : 'some ran';
  if (ran > 0) return ran === of('tool-result').length ? 'its calls ran' : 'some ran';
  if (of('notice').some(({ code }) => code === 'empty_reply'))
    return 'no reply: the model is asked again, with the reason';
  if (of('model-reply').length > 1) return 'not the end: the model is asked again';
  const refused = of('agent-output').some(({ item }) => 'flag' in item && item.flag === 'refusal');
  return refused ? 'the answer, a refusal' : 'the answer';
}

async function live(model: Model): Promise<{ fate: string; finish: string | undefined }> {
  const clock = new VirtualClock();
  const echo = echoTool();
  const ports = { now: clock.now, setTimer: clock.setTimer, random: () => 0 };
  const agent = createAgent({ model, tools: [echo.tool], ports });
  const conversation = await agent.open('c');
  const run = conversation.send('hi');
  await clock.until(run.result, 60_000);
  const log = conversation.log();
  const fate = fateOf(await run.result, log, echo.ran.length);
  await agent.close();
  const first = log.find((entry) => entry.type === 'model-reply');
  return { fate, finish: first?.finish };
}

const ANSWER = 'the answer';
const AGAIN = 'no reply: the model is asked again, with the reason';
const RAN = 'its calls ran';
const NOT_RUN = 'its call was not run';
const GOES_ON = 'not the end: the model is asked again';
const CUT = 'an answer that is cut off';
/** The outcome of each end, whatever parts came before it. */
const BY_END: { [end in End]?: Fate } = {
  'content filter': 'the run failed',
  error: 'the attempt failed, and is made again',
  'no word': 'the attempt failed, and is made again',
};
/** Written by hand: stop, tool calls, length, pause, and an unknown word. */
const BY_CONTENT: { [content in Content]: readonly [Fate, Fate, Fate, Fate, Fate] } = {
  nothing: [AGAIN, AGAIN, AGAIN, GOES_ON, AGAIN],
  spaces: [AGAIN, AGAIN, AGAIN, GOES_ON, AGAIN],
  reasoning: [AGAIN, AGAIN, AGAIN, GOES_ON, AGAIN],
  text: [ANSWER, ANSWER, CUT, GOES_ON, ANSWER],
  'a call': [RAN, RAN, RAN, RAN, RAN],
  'text and two calls': [RAN, RAN, RAN, RAN, RAN],
  'a call without its end': [NOT_RUN, NOT_RUN, NOT_RUN, NOT_RUN, NOT_RUN],
  'a refusal': ['the answer, a refusal', 'the answer, a refusal', CUT, GOES_ON, 'the answer, a refusal'],
};
const COLUMNS: readonly End[] = ['stop', 'tool calls', 'length', 'pause', 'a word nobody knows'];
const byHand = (content: Content, end: End): Fate =>
  BY_END[end] ?? BY_CONTENT[content][COLUMNS.indexOf(end)] ?? 'the run failed';

describe('a reply by its content and its finish reason', () => {
  it.each(CONTENTS)('of chat completions with %s', async (content) => {
    const found = [];
    for (const end of ENDS) found.push([end, await (await live(overTheWire(content, WORDS[end]))).fate]);
    expect(found).toEqual(ENDS.map((end) => [end, byHand(content, end)]));
  });

  const ofTheSdk = CONTENTS.flatMap((content) => (content === 'a refusal' ? [] : [content]));
  it.each(ofTheSdk)('of a provider of the AI SDK with %s', async (content) => {
    const found = [];
    for (const end of ENDS) found.push([end, (await live(byTheSdk(content, end))).fate]);
    // The SDK gives a call when it is whole: one without its end is none.
    const as = content === 'a call without its end' ? 'nothing' : content;
    expect(found).toEqual(ENDS.map((end) => [end, byHand(as, end)]));
  });

  it.each(SYNONYMS)('a server may send %s as another word', async (end, synonyms) => {
    for (const word of synonyms) {
      const found = [(await live(overTheWire('text', word))).fate, (await live(overTheWire('a call', word))).fate];
      expect([word, ...found]).toEqual([word, byHand('text', end), byHand('a call', end)]);
    }
  });

  it('a reply with calls is logged with tool-calls, even if the server sends stop', async () => {
    const finishes = [];
    for (const end of COLUMNS)
      finishes.push([
        (await live(overTheWire('text and two calls', WORDS[end]))).finish,
        (await live(byTheSdk('text and two calls', end))).finish,
      ]);
    const expected = ['tool-calls', 'tool-calls', 'length', 'pause', 'tool-calls'];
    expect(finishes).toEqual(expected.map((finish) => [finish, finish]));
  });
});
