/**
 * The document's request, "Read main.go and tell me what it does", with real parts: a model server on the loopback, a
 * file on disk, a log of lines, the shipped adapter, tools, rules, hooks, prompt and transport. Each part counts its
 * uses.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { AnyActorRef } from 'xstate';
import { costOf, createAgent, defineTool, type LogStore } from '../../src/index.ts';
import { Attempt } from '../../src/models/attempt.ts';
import { ChatReply } from '../../src/models/openai/chatReply.ts';
import { openai } from '../../src/models/openai/openai.ts';
import {
  codingTools,
  type Hook,
  type HookEvent,
  type HookOptions,
  hooks,
  jsonlStore,
  permissions,
  systemPrompt,
} from '../../src/node.ts';
import { CALL_CHECKS, type ChecksCalls } from '../../src/plugins/callChecks.ts';
import { definitionOf } from '../../src/tools/tool.ts';
import { Toolbox } from '../../src/tools/toolbox.ts';
import { type Incoming, inProcessTransport, type Outgoing, route, type Transport } from '../../src/transports/index.ts';
import { modelServer } from '../e2e/modelServer.ts';
import { temporaryFolder } from '../support/temporaryFolder.ts';

const QUESTION = 'Read main.go and tell me what it does';
const ANSWER = 'This is a Go main package that greets.';
const PRICES = { input: 30, output: 150 };

/** The messages of the trace, among all messages of the protocol. */
function kindOf(message: Outgoing): string | undefined {
  if (message.type === 'entry') return message.entry.type === 'model-reply' ? 'assistant' : undefined;
  if (message.type !== 'live') return message.type;
  return message.signal.type === 'tool-progress' ? `progress ${String(message.signal.update)}` : undefined;
}

/** A store that counts conversations, and durable steps by boundary. */
function counted(store: LogStore, persists: string[]): LogStore {
  return {
    ...{ list: () => store.list(), delete: (id: string) => store.delete(id) },
    async open(id) {
      const handle = await store.open(id);
      return {
        read: (from) => handle.read(from),
        close: () => handle.close(),
        async append(entries, expectedSeq) {
          await handle.append(entries, expectedSeq);
          if (entries[0]?.type === 'conversation') persists.push('Create');
          const last = entries.at(-1);
          if (last?.type === 'checkpoint') persists.push(last.boundary);
        },
      };
    },
  };
}

/** Counts the model calls of the chart RUN. */
function loopCounter() {
  const inCall = new Map<AnyActorRef, boolean>();
  let iterations = 0;
  return {
    get iterations() {
      return iterations;
    },
    inspect(event: unknown) {
      const { type, actorRef } = event as { type: string; actorRef: AnyActorRef & { logic: { id?: string } } };
      if (type !== '@xstate.snapshot' || actorRef.logic.id !== 'RUN') return;
      const is = JSON.stringify((actorRef.getSnapshot() as { value: unknown }).value).includes('LlmCall');
      if (is && !inCall.get(actorRef)) iterations += 1;
      inCall.set(actorRef, is);
    },
  };
}

async function traced() {
  const cwd = temporaryFolder();
  writeFileSync(join(cwd, 'main.go'), 'package main\n\nfunc main() { println("hi") }\n');
  writeFileSync(join(cwd, 'CLAUDE.md'), 'Be brief.');
  const server = await modelServer(
    (reply) => {
      reply.text("I'll read", ' the file.');
      reply.call('call_1', 'Read', '{"file_path":"main.go"}');
      reply.finish('tool_calls');
    },
    (reply) => {
      // The prompt is that of the session, even if the files have changed.
      writeFileSync(join(cwd, 'CLAUDE.md'), 'Be long.');
      reply.text('This is a ', 'Go main package ', 'that greets.');
      reply.finish('stop');
    },
  );
  const events: HookEvent[] = [];
  const record: Hook = { run: ({ event }) => void events.push(event) };
  const watched: HookEvent[] = ['SessionStart', 'PreToolUse', 'PermissionRequest', 'PostToolUse', 'PostToolUseFailure'];
  const all = [...watched, 'Notification', 'PreCompact', 'Stop', 'SessionEnd'] as const;
  const rules = permissions({ allow: ['Read'] });
  const checks = (rules as ChecksCalls)[CALL_CHECKS];
  if (!checks?.permit) throw new Error('rules check calls');
  let reads = 0;
  const tools = codingTools().map((tool) => {
    const definition = definitionOf(tool);
    if (!definition || tool.name !== 'Read') return tool;
    const execute: typeof definition.execute = (args, context) => {
      reads += 1;
      return definition.execute(args, context);
    };
    return defineTool({ ...definition, execute });
  });
  const spies = {
    sse: vi.spyOn(ChatReply.prototype, 'event'),
    replies: vi.spyOn(Attempt.prototype, 'run'),
    lookups: vi.spyOn(Toolbox.prototype, 'prepare'),
    permits: vi.spyOn(checks, 'permit'),
  };
  onTestFinished(() => void vi.restoreAllMocks());
  const persists: string[] = [];
  const loop = loopCounter();
  const agent = createAgent({
    model: openai('claude', {
      baseURL: server.baseURL,
      apiKey: 'sk-trace-000000',
      prices: PRICES,
      contextWindow: 200_000,
    }),
    tools,
    plugins: [
      systemPrompt({ git: false }),
      hooks(Object.fromEntries(all.map((event) => [event, [record]])) as HookOptions),
      rules,
    ],
    store: counted(jsonlStore(temporaryFolder()), persists),
    cwd,
    inspect: loop.inspect,
  });
  onTestFinished(() => agent.close());
  return { agent, server, events, spies, persists, loop, reads: () => reads };
}

/** Sends the request through the router, and follows it to the end. */
async function ask(agent: Parameters<typeof route>[0]) {
  const { server, client } = inProcessTransport();
  let bridged = 0;
  const counting: Transport = {
    async *read() {
      for await (const message of server.read()) {
        bridged += 1;
        yield message;
      }
    },
    async write(message) {
      if (kindOf(message) !== undefined) bridged += 1;
      await server.write(message);
    },
    close: () => server.close(),
  };
  const outgoing: Outgoing[] = [];
  client.messages$.subscribe((message) => outgoing.push(message));
  const routed = route(agent, counting, { multiTurn: false });
  client.send({ type: 'user-message', conversation: 'trace', content: QUESTION } satisfies Incoming);
  await expect.poll(() => outgoing.at(-1)?.type).toBe('result');
  client.close();
  await routed;
  await agent.close();
  return { outgoing, bridged: () => bridged };
}

it(
  'TRC-16 each component is touched as often as in the table; its hook runner (4) leaves out the SessionEnd of step 6.5, which ' +
    'makes 5, and its session store (5) leaves out the assistant of step 5.8, which makes 6: a create, four persists and the finalize',
  async () => {
    const { agent, server, events, spies, persists, loop, reads } = await traced();
    const { outgoing, bridged } = await ask(agent);
    const kinds = outgoing.flatMap((message) => kindOf(message) ?? []);
    const log = outgoing.flatMap((message) => (message.type === 'entry' ? [message.entry] : []));
    const { calls, total } = costOf(log);
    expect(kinds).toEqual(['system-init', 'assistant', 'progress started', 'progress ended', 'assistant', 'result']);
    expect(outgoing.at(-1)).toMatchObject({ subtype: 'success', result: ANSWER, turns: 2, costUsd: total.costUsd });
    expect({
      // One message in, six out; the table has "about 8".
      transport: 1 + kinds.length,
      router: bridged(),
      runLoop: loop.iterations,
      llmClient: server.asked.length,
      // The frames of both replies, each with a usage and a [DONE]; the table has "about 12".
      sseParser: spies.sse.mock.calls.length,
      accumulator: spies.replies.mock.calls.length,
      toolRegistry: spies.lookups.mock.calls.map(([{ name }]) => name),
      fileReadTool: reads(),
      permissionChecker: spies.permits.mock.calls.length,
      hookRunner: events,
      promptAssembler: new Set(server.asked.map(({ messages }) => JSON.stringify(messages[0]))).size,
      sessionStore: persists,
      costTracker: calls.map(({ costUsd }) => costUsd !== null),
      contextCompactor: log.filter(({ type }) => type === 'compaction').length,
    }).toEqual({
      transport: 7,
      router: 7,
      runLoop: 2,
      llmClient: 2,
      sseParser: 12,
      accumulator: 2,
      toolRegistry: ['Read'],
      fileReadTool: 1,
      permissionChecker: 1,
      hookRunner: ['SessionStart', 'PreToolUse', 'PostToolUse', 'Stop', 'SessionEnd'],
      promptAssembler: 1,
      sessionStore: [
        'Create',
        'UserMessage',
        'AssistantTurnCommitted',
        'ToolResultsCommitted',
        'AssistantTurnCommitted',
        'RunFinished',
      ],
      costTracker: [true, true],
      contextCompactor: 0,
    });
    // The document's own messages, as sent to the model server.
    expect(server.asked[1]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool']);
    expect(server.asked[0]?.messages[0]?.content).toContain('Be brief.');
    expect(server.asked[1]?.messages[3]?.content).toContain('1 | package main');
  },
);
