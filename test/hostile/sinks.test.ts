/**
 * Every source of foreign text, combined with every place where it is shown or stored. Invariant: no place contains a
 * configured secret, in keys or values, whole or in pieces. A source is a row of `sources`; a place is a field that
 * `placesOf` collects.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { from } from 'rxjs';
import { describe, expect, test } from 'vitest';
import {
  type AgentOptions,
  createAgent,
  type Live,
  type LogEntry,
  ModelError,
  type ModelPart,
  type Plugin,
  type RunError,
  subAgents,
  toolResult,
} from '../../src/index.ts';
import { Observed } from '../../src/inspect/observed.ts';
import { RecordLog } from '../../src/inspect/recordLog.ts';
import { recordingJournal } from '../../src/journals/index.ts';
import { type HookOptions, hooks, jsonlStore } from '../../src/node.ts';
import { openTelemetry } from '../../src/otel/openTelemetry.ts';
import { createHandlers, sessions, toAgUi, toUiMessages } from '../../src/transports/index.ts';
import { askedTool, call, calls, plainTool, type ScriptedModel, say, scripted } from './hostileAgent.ts';
import { watchEachTest, watched } from './hostileChecks.ts';

watchEachTest();

type Scene = Partial<AgentOptions> & { model: ScriptedModel };
interface Source {
  scene(secret: string): Scene;
  /** Nothing of the source is stored or shown, so its place has no redaction mark. */
  unmarked?: true;
}

const finish: ModelPart = { type: 'finish', reason: 'tool-calls' };
const tool = (execute: (args: unknown, context: never) => unknown): Scene => ({
  model: scripted([calls(call('c1', 't'))]),
  tools: [plainTool('t', execute)],
});
const replying = (...parts: ModelPart[]): Scene => ({
  model: scripted([[...parts, finish]]),
  tools: [plainTool('t', () => 'ok')],
});
const throwing = (error: unknown): Scene => ({
  model: scripted([
    () => {
      throw error;
    },
  ]),
  policies: { modelRetry: { attempts: 2, baseMs: 1 } },
});
const plugged = (plugin: Omit<Plugin, 'name'>): Scene => ({
  ...tool(() => 'ok'),
  plugins: [{ name: 'p', ...plugin }],
});
const hooked = (options: HookOptions): Scene => ({ ...tool(() => 'ok'), plugins: [hooks(options)] });
const pieces = (secret: string, type: 'text-delta' | 'reasoning-delta'): ModelPart[] =>
  [...`a${secret}b`].map((text) => ({ type, text }));

type Progress = { progress(update: unknown): void };
const sources: { readonly [name: string]: Source['scene'] | Source } = {
  'the text of a reply': (secret) => replying({ type: 'text-delta', text: `it is ${secret}` }),
  'the text of a reply, in pieces': (secret) => replying(...pieces(secret, 'text-delta')),
  'reasoning, in pieces': (secret) => replying(...pieces(secret, 'reasoning-delta')),
  'text on both sides of reasoning': (secret) =>
    replying(
      ...pieces(secret, 'text-delta'),
      { type: 'reasoning-delta', text: secret },
      ...pieces(secret, 'text-delta'),
    ),
  'arguments as they are streamed': (secret) =>
    replying(
      { type: 'tool-call-delta', index: 0, name: 't', text: '' },
      ...[...JSON.stringify({ [secret]: secret })].map(
        (text) => ({ type: 'tool-call-delta', index: 0, text }) as const,
      ),
      call('c1', 't', JSON.stringify({ [secret]: secret })),
    ),
  'the name of a call as it is streamed': (secret) =>
    replying({ type: 'tool-call-delta', index: 0, name: secret, text: '{}' }, call('c1', secret)),
  'the name of an unknown tool': (secret) => replying(call('c1', secret)),
  'the id of a call': (secret) => replying(call(secret, 't'), call(secret, 't')),
  'a value of arguments': (secret) => replying(call('c1', 't', JSON.stringify({ a: [secret] }))),
  'a key of arguments': (secret) => replying(call('c1', 't', JSON.stringify({ a: { [secret]: 1 } }))),
  'arguments that do not parse': (secret) => replying(call('c1', 't', `{"${secret}`)),
  'provider data of a call': (secret) =>
    replying({ type: 'tool-call', callId: 'c', name: 't', args: '{}', extra: { [secret]: 1 } }),
  'provider data of a reply': (secret) => ({
    model: scripted([
      [
        { type: 'text-delta', text: 'hi' },
        { type: 'finish', reason: 'stop', extra: { [secret]: 1 } },
      ],
    ]),
  }),
  'the detail of a diagnostic of a model': (secret) =>
    replying({ type: 'diagnostic', code: 'c', detail: { [secret]: 1 } }),
  'the code of a diagnostic of a model': (secret) => replying({ type: 'diagnostic', code: secret }),
  'an error of a model': (secret) => throwing(new Error(`refused ${secret}`)),
  'the code of an error of a model': (secret) =>
    throwing(new ModelError({ code: secret as never, message: `refused ${secret}`, retryable: true })),
  'a text of a result': (secret) => tool(() => `key=${secret};`),
  'a value of a result': (secret) => tool(() => ({ nested: [{ key: secret }] })),
  'a key of a result': (secret) => tool(() => ({ [secret]: true })),
  'a part of a result': (secret) => tool(() => [{ type: 'text', text: secret }]),
  'an error of a tool': (secret) => tool(() => Promise.reject(new Error(`cannot log in with ${secret}`))),
  'a thrown value of a tool': (secret) => tool(() => Promise.reject({ [secret]: 1, toString: () => secret })),
  'the code of an error result': (secret) => tool(() => toolResult.error('x', secret)),
  'the reason of a suspension': (secret) => tool(() => toolResult.pending({ reason: secret })),
  'a value of the payload of a suspension': (secret) =>
    tool(() => toolResult.pending({ reason: 'r', payload: [secret] })),
  'a key of the payload of a suspension': (secret) =>
    tool(() => toolResult.pending({ reason: 'r', payload: { parts: { [secret]: 1 } } })),
  'a value of state': (secret) => tool(() => toolResult.success('x', { state: { a: secret } })),
  'a key of state': (secret) => tool(() => toolResult.success('x', { state: { [secret]: 1 } })),
  'a value of progress': (secret) => tool((_, context: Progress) => context.progress({ lastLine: secret })),
  'a key of progress': (secret) => tool((_, context: Progress) => context.progress({ [secret]: 1 })),
  'a value that a generator yields': (secret) =>
    tool(async function* () {
      yield { [secret]: secret };
      return 'ok';
    }),
  'a plugin that throws': (secret) => plugged({ runStart: () => Promise.reject(new Error(secret)) }),
  'a check that throws': (secret) => plugged({ beforeToolExecute: () => Promise.reject(new Error(secret)) }),
  'a block of a plugin': (secret) => plugged({ beforeToolExecute: () => ({ block: secret }) }),
  'arguments of a plugin': (secret) => plugged({ beforeToolExecute: () => ({ args: { [secret]: secret } }) }),
  'a suspension of a plugin': (secret) =>
    plugged({ beforeToolExecute: () => ({ suspend: { reason: secret, payload: { [secret]: 1 } } }) }),
  'a result of a plugin': (secret) => plugged({ afterToolExecute: () => ({ result: secret }) }),
  'context of a plugin': (secret) => plugged({ afterToolExecute: () => ({ context: secret }) }),
  'the reason of a plugin that ends a run': (secret) => plugged({ beforeInference: () => ({ terminate: secret }) }),
  'the reason of a plugin that continues a run': (secret) => ({
    model: scripted([]),
    plugins: [{ name: 'p', naturalEnd: ({ turn }) => (turn < 2 ? { continue: secret } : undefined) }],
  }),
  'state of a plugin': (secret) => plugged({ runStart: () => ({ state: { [secret]: secret } }) }),
  'the reason of a hook that blocks a call': (secret) =>
    hooked({ PreToolUse: [{ run: () => ({ decision: 'block', reason: secret }) }] }),
  'the reason of a hook that stops a run': (secret) =>
    hooked({ PostToolUse: [{ run: () => ({ continue: false, stopReason: secret }) }] }),
  'arguments of a hook': (secret) => hooked({ PreToolUse: [{ run: () => ({ updatedInput: { [secret]: 1 } }) }] }),
  'context of a hook': (secret) => hooked({ SessionStart: [{ run: () => ({ additionalContext: secret }) }] }),
  'context of a hook after a call': (secret) =>
    hooked({ PostToolUse: [{ run: () => ({ additionalContext: secret }) }] }),
  'the reason of a hook that continues a run': (secret) =>
    hooked({ Stop: [{ run: () => ({ continue: true, reason: secret }) }] }),
  'a hook that throws': (secret) => hooked({ UserPromptSubmit: [{ run: () => Promise.reject(new Error(secret)) }] }),
  'the error output of a hook command': (secret) =>
    hooked({ PreToolUse: [{ command: `printf %s ${quoted(secret)} >&2; exit 2` }] }),
  'the output of a failing hook command': (secret) =>
    hooked({ PreToolUse: [{ command: `printf %s ${quoted(secret)} >&2; exit 1` }] }),
  'the final text of a sub-agent': (secret) => inSubAgent(say(`it is ${secret}`)),
  'reasoning of a sub-agent': (secret) => inSubAgent([...pieces(secret, 'reasoning-delta'), ...say('done')]),
  'a question of a sub-agent': (secret) => inSubAgent(calls(call('s1', 'ask', JSON.stringify({ path: secret })))),
};

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The child's model is the agent's own. */
function inSubAgent(reply: ModelPart[]): Scene {
  const tasks = JSON.stringify({ tasks: [{ id: 'one', task: 'look' }] });
  return {
    model: scripted([calls(call('c1', 'spawn_agents', tasks)), reply]),
    tools: [subAgents({}), askedTool('ask')],
  };
}

/** Every text of a value, including keys. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => [key, ...textsOf(child)]);
}

/** Deltas of one kind, joined as a page does. */
function joined(signals: readonly Live[]): string[] {
  const texts = new Map<string, string>();
  for (const signal of signals) {
    if (!('text' in signal)) continue;
    const index = 'index' in signal ? signal.index : '';
    const key = `${signal.path ?? ''} ${signal.runId} ${signal.type} ${index}`;
    texts.set(key, (texts.get(key) ?? '') + signal.text);
  }
  return [...texts.values()];
}

async function filesIn(directory: string): Promise<string> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = names.filter((each) => each.isFile()).map((each) => readFile(join(each.parentPath, each.name), 'utf8'));
  return (await Promise.all(files)).join('');
}

interface Place {
  /** The stored or shown value. */
  texts: string[];
}
const place = (...values: unknown[]): Place => ({ texts: values.flatMap(textsOf) });

/** One request of the scene, and all its traces. */
async function placesOf(scene: Scene, secret: string): Promise<Record<string, Place>> {
  const directory = await mkdtemp(join(tmpdir(), 'sinks-'));
  const recording: unknown[] = [];
  const records = new RecordLog(() => 0);
  const observed = new Observed(records);
  const toolArguments: unknown[] = [];
  const exporter = new InMemorySpanExporter();
  const tracer = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer('sinks');
  const agent = createAgent({
    ...scene,
    plugins: [...(scene.plugins ?? []), openTelemetry({ tracer, contents: true })],
    secrets: [secret],
    store: jsonlStore(directory),
    inspect: observed.observe,
    ports: {
      journal: recordingJournal((line) => void recording.push(line), { secrets: [secret] }),
      execute: (definition, args, context) => {
        toolArguments.push(args, context.state);
        return definition.execute(args as never, context);
      },
    },
  });
  const shared = sessions(agent);
  const handler = createHandlers(agent, { authorize: () => true, sessions: shared });
  try {
    const conversation = watched(await shared.acquire('c'));
    const signals: Live[] = [];
    const inFlight: unknown[] = [];
    const order: (LogEntry | Live)[] = [];
    conversation.live$.subscribe((signal) => {
      signals.push(signal);
      order.push(signal);
      inFlight.push(conversation.inFlight);
    });
    conversation.log$().subscribe((entry) => void order.push(entry));
    const events = (await handler(new Request('http://here/conversations/c/events'))).text();
    const run = conversation.send('go');
    const result = await run.result;
    const thrown = await run.text.catch((error: RunError) => [error.message, error.result]);
    const shown = await (await handler(new Request('http://here/conversations/c'))).text();
    const { pending, queue, state, unsettled } = conversation;
    const log = conversation.log();
    const framesOf = (protocol: typeof toAgUi): unknown[] => {
      const frames: unknown[] = [];
      protocol(from(order)).subscribe((frame) => void frames.push(frame));
      return frames;
    };
    const places = {
      log: place(log),
      view: place(conversation.view()),
      messages: place(conversation.messages()),
      pending: place(pending, unsettled, queue),
      state: place(state),
      result: place(result, thrown),
      'live signals': place(signals, joined(signals)),
      'a reply in flight': place(inFlight),
      'requests to the model': place(scene.model.requests),
      'arguments of tools': place(toolArguments),
      'AG-UI': place(framesOf(toAgUi)),
      'UI messages': place(framesOf(toUiMessages)),
      recording: place(recording),
      inspector: place([...records.since(0)]),
      'HTTP state': place(JSON.parse(shown)),
    };
    await conversation.close();
    observed.close();
    const spans = exporter
      .getFinishedSpans()
      .map(({ name, attributes, events, status }) => ({ name, attributes, events, status }));
    return {
      ...places,
      OpenTelemetry: place(spans),
      'HTTP events': place(await events),
      files: place(await filesIn(directory)),
    };
  } finally {
    await agent.close();
    await rm(directory, { recursive: true });
  }
}

/** Plain, in JSON text and in a URL, from the usual writers of both. */
function writtenForms(secret: string): string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const inUrl = encodeURIComponent(secret);
  return [...new Set([secret, inJson, JSON.stringify(inJson).slice(1, -1), inUrl])];
}

const SECRETS = ['sk-live-0123456789abcdef', 'p"ss\\wörd/&\n!'];
const MARK = '[redacted]';

describe.each(SECRETS)('the secret %j', (secret) => {
  test.each(Object.entries(sources))('it is shown and stored nowhere if it is in %s', async (_, source) => {
    const { scene, unmarked } = typeof source === 'function' ? { scene: source, unmarked: false } : source;
    const places = await placesOf(scene(secret), secret);
    const forms = writtenForms(secret);
    const leaks = Object.entries(places).flatMap(([name, { texts }]) =>
      texts.filter((text) => forms.some((form) => text.includes(form))).map((text) => `${name}: ${text.slice(0, 200)}`),
    );
    expect(leaks).toEqual([]);
    const isMarked = Object.values(places).some(({ texts }) => texts.some((text) => text.includes(MARK)));
    expect(isMarked).toBe(!unmarked);
  });
});
