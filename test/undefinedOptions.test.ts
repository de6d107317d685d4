/** Invariant: an option with the value undefined equals an absent one, also in nested objects. */
import { mkdtempSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { connect } from '../src/client/index.ts';
import { createAgent, defineTool, memoryStore, presets, subAgents } from '../src/index.ts';
import { hooks, jsonlStore, permissions } from '../src/node.ts';
import { openTelemetry } from '../src/otel/openTelemetry.ts';
import { sqliteStore } from '../src/stores/sqlite/sqliteStore.ts';
import { agentPaths, runScript, scriptedModel, simulate } from '../src/testing/index.ts';
import { createHandlers, route, sessions, stdioTransport, uiMessageHandler } from '../src/transports/index.ts';
import { scripted } from './support/scriptedReplies.ts';

/** Undefined in place of any value. */
const nothing = undefined as never;
const model = () => scripted(['one']);
const authorize = (): boolean => true;
const HAS_SQLITE = isBuiltin('node:sqlite');

function path(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'runchart-undefined-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, name);
}

const POLICIES = {
  whileActive: nothing,
  toolRetry: { attempts: nothing, retryable: nothing, jitter: nothing },
  modelRetry: { attempts: 2, baseMs: nothing, fallbackModels: nothing },
  modelTimeout: { firstPartMs: nothing, totalMs: nothing },
  limits: { turns: nothing, costUsd: nothing, toolMs: 5 },
  textToolCalls: nothing,
};

const CALLS: readonly (readonly [name: string, make: () => unknown])[] = [
  [
    'createAgent',
    () => createAgent({ model: model(), tools: nothing, plugins: nothing, store: nothing, secrets: nothing }),
  ],
  [
    'createAgent, logger and ports',
    () => createAgent({ model: model(), logger: { info: nothing }, ports: { now: nothing } }),
  ],
  ['createAgent, policies', () => createAgent({ model: model(), policies: { ...POLICIES, context: nothing } })],
  [
    'createAgent, presets',
    () => createAgent({ model: model(), policies: { ...presets.coding, limits: nothing } as never }),
  ],
  [
    'a model',
    () => createAgent({ model: { ...model(), contextWindow: nothing, prices: nothing, imageLimits: nothing } }),
  ],
  ['prices', () => createAgent({ model: { ...model(), prices: { input: 1, output: 1, cachedInput: nothing } } })],
  [
    'defineTool',
    () =>
      defineTool({
        name: 't',
        description: nothing,
        parameters: z.object({}),
        readOnly: nothing,
        timeoutMs: nothing,
        execute: () => 1,
      }),
  ],
  ['subAgents', () => subAgents({ name: nothing, limits: { turns: nothing, runMs: nothing }, maxSubAgents: nothing })],
  ['permissions', () => permissions({ mode: nothing, allow: nothing, deny: nothing } as never)],
  [
    'hooks',
    () =>
      hooks({
        PreToolUse: nothing,
        Stop: [{ matcher: nothing, timeoutMs: nothing, required: nothing, run: () => undefined }],
      } as never),
  ],
  ['jsonlStore', () => jsonlStore(path('logs'), { durability: nothing })],
  // Older versions of Node have no SQLite.
  ...(HAS_SQLITE ? [['sqliteStore', () => sqliteStore(path('a.db'), { durability: nothing })] as const] : []),
  ['openTelemetry', () => openTelemetry({ tracer: nothing, contents: nothing })],
  ['scriptedModel', () => scriptedModel(['a'], { prices: nothing, contextWindow: nothing })],
  ['scriptedModel, a reply', () => scriptedModel([{ parts: [], delayMs: nothing }] as never)],
  ['connect', () => connect({ baseURL: 'http://h', headers: nothing, fetch: nothing, logger: nothing })],
  [
    'sessions',
    () => sessions(createAgent({ model: model() }), { idleMs: nothing, openMax: nothing, setTimer: nothing }),
  ],
  ['stdioTransport', () => stdioTransport(nothing)],
  ...([createHandlers, uiMessageHandler] as const).map(
    (make) =>
      [
        make.name,
        () =>
          make(createAgent({ model: model(), store: memoryStore() }), {
            authorize,
            basePath: nothing,
            beatMs: nothing,
            limits: { clients: nothing, requests: nothing, idleMs: nothing, openMax: nothing },
            allow: { models: nothing, settings: nothing },
            sessions: nothing,
            logger: nothing,
          }),
      ] as const,
  ),
  [
    'send',
    async () => {
      const conversation = await createAgent({ model: model() }).open('a', {
        history: nothing,
        cwd: nothing,
        owner: nothing,
      });
      const { text } = conversation.send('hi', {
        signal: nothing,
        kind: nothing,
        by: nothing,
        context: nothing,
        model: nothing,
        settings: { temperature: nothing, toolChoice: nothing },
        tools: nothing,
        messageId: nothing,
        output: nothing,
        whileSuspended: nothing,
      });
      expect(await text).toBe('one');
    },
  ],
  [
    'list',
    () => createAgent({ model: model() }).list({ owner: nothing, limit: nothing, cursor: nothing, status: nothing }),
  ],
  [
    'agentPaths',
    () =>
      agentPaths((world) => createAgent(world), {
        examples: nothing,
        cover: nothing,
        moves: [],
        bounds: { rounds: 1, calls: nothing, replies: nothing, troubles: 0, decisions: 0, resumes: 0 },
        abortMs: nothing,
      }),
  ],
  [
    'runScript',
    () =>
      runScript((world) => createAgent(world), [
        { do: 'send', text: nothing },
        { do: 'reply', text: 'a', finish: nothing },
      ] as never),
  ],
  [
    'simulate',
    () => simulate({ seed: 1, maxSteps: 5, agent: nothing, tape: nothing, args: nothing, invariants: nothing }),
  ],
  [
    'route',
    () =>
      route(
        createAgent({ model: model() }),
        { read: async function* () {}, write: async () => {}, close: async () => {} },
        { owner: nothing, logger: nothing, about: nothing, sessions: nothing },
      ),
  ],
];

it.each(CALLS)('%s takes undefined for each option', async (_, make) => {
  await make();
});
