/**
 * A client of the Agent Client Protocol for tests: the SDK's own client over byte streams, an agent with a scripted
 * model, and everything that the client has received. Invariant: the agent, the rules and the store are real.
 */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ClientCapabilities,
  type ClientContext,
  client,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { onTestFinished } from 'vitest';
import * as z from 'zod';
import { EditorAgent, type EditorAgentOptions } from '../../../src/cli/acp/editorAgent.ts';
import { type CodingAgent, summaryOnDemand } from '../../../src/cli/codingAgent.ts';
import { countingStore } from '../../../src/cli/renderLog.ts';
import { ServerConnections } from '../../../src/cli/servers/serverConnections.ts';
import type { ServerEntry } from '../../../src/cli/servers/serverEntries.ts';
import { sessionPlace } from '../../../src/cli/sessions/sessionPlace.ts';
import { workingDirectory } from '../../../src/cli/sessions/sessionStore.ts';
import { FileHistory } from '../../../src/cli/undo/fileHistory.ts';
import { createAgent, defineTool, presets } from '../../../src/index.ts';
import { permissions } from '../../../src/permissions/permissions.ts';
import type { PermissionMode } from '../../../src/permissions/verdict.ts';
import { allowAlways, forgetAllowed } from '../../../src/session/configuration.ts';
import { jsonlStore } from '../../../src/stores/jsonl/jsonlStore.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { type Reply, type ScriptedModel, scripted } from '../../support/scriptedReplies.ts';
import { noEquipment } from '../interactive/talkBench.ts';

export async function temporaryRoot(): Promise<string> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'runchart-acp-')));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  return root;
}

/** The agent of the program for one directory, with a scripted model and a tool that counts its calls. */
export function agentMaker(root: string, model: ScriptedModel, ran: unknown[] = [], mode: PermissionMode = 'default') {
  const deploy = defineTool({
    name: 'Deploy',
    description: 'Deploys.',
    parameters: z.object({ to: z.string() }),
    execute: ({ to }) => {
      ran.push(to);
      return `deployed to ${to}`;
    },
  });
  return async (directory: string, entries: readonly ServerEntry[] = []): Promise<CodingAgent> => {
    const cwd = await workingDirectory(directory);
    const { plugin, compactNext } = summaryOnDemand();
    const rules = permissions({ mode });
    const store = countingStore(jsonlStore(join(root, 'sessions')));
    const servers = new ServerConnections(entries);
    const own = [...codingTools({ sandbox: 'off' }), deploy, rules.exitPlanMode()];
    const tools = servers.joinedTo(own, () => true);
    const policies = { ...presets.coding, onPartialSuspend: 'wait' as const };
    const agent = createAgent({ model, tools, plugins: [rules, plugin, servers.plugin], policies, cwd, store });
    return {
      agent,
      model,
      permissions: rules,
      cwd,
      sessions: await sessionPlace(join(root, 'sessions')),
      store,
      history: new FileHistory(join(root, 'history')),
      close: async () => {
        await agent.close();
        await servers.close();
      },
      keep: (kept) => allowAlways(kept, { cwd, userDirectory: join(root, 'user') }),
      unkeep: (rule) => forgetAllowed(rule, { cwd, userDirectory: join(root, 'user') }),
      compactNext,
      layers: [],
      equipment: { ...noEquipment(), servers },
      remade: () => Promise.reject(new Error('the agent is not made anew')),
      about: { model: model.id, tools: tools.map(({ name }) => name), permissionMode: rules.mode },
    };
  };
}

export interface EditorOptions {
  readonly root: string;
  /** Answers a question. Without it, a question waits for ever. */
  readonly answer?: (asked: RequestPermissionRequest) => Promise<RequestPermissionResponse>;
  readonly capabilities?: ClientCapabilities;
}

export interface Editor {
  readonly agent: ClientContext;
  readonly updates: SessionUpdate[];
  readonly asked: RequestPermissionRequest[];
  /** The connection breaks, as when the editor is killed. Resolves when the agent has closed its sessions. */
  disconnect(): Promise<void>;
}

/** Starts an agent and a client on two byte streams. */
export async function editorOf(
  makeAgent: EditorAgentOptions['makeAgent'],
  { root, answer, capabilities = {} }: EditorOptions,
): Promise<Editor> {
  const [toAgent, toClient] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  const place = await sessionPlace(join(root, 'sessions'));
  const editor = new EditorAgent({ version: '0.0.0', place, makeAgent });
  const served = editor.app.connect(ndJsonStream(toClient.writable, toAgent.readable));
  const updates: SessionUpdate[] = [];
  const asked: RequestPermissionRequest[] = [];
  const app = client({ name: 'test' })
    .onNotification('session/update', ({ params }) => void updates.push(params.update))
    .onRequest('session/request_permission', ({ params }) => {
      asked.push(params);
      return answer ? answer(params) : new Promise<never>(() => undefined);
    });
  const connection = app.connect(ndJsonStream(toAgent.writable, toClient.readable));
  const disconnect = async (): Promise<void> => {
    connection.close();
    served.close();
    await editor.close();
  };
  onTestFinished(disconnect);
  await connection.agent.request('initialize', { protocolVersion: 1, clientCapabilities: capabilities });
  return { agent: connection.agent, updates, asked, disconnect };
}

export const choose = (optionId: string) => async (): Promise<RequestPermissionResponse> => ({
  outcome: { outcome: 'selected', optionId },
});

/** A new editor with one session, whose model gives these replies. */
export async function begun(
  replies: readonly Reply[],
  options: Partial<EditorOptions> & { window?: object; mode?: PermissionMode } = {},
) {
  const root = options.root ?? (await temporaryRoot());
  const ran: unknown[] = [];
  const model = scripted([...replies], options.window);
  const makeAgent = agentMaker(root, model, ran, options.mode);
  const editor = await editorOf(makeAgent, { ...options, root });
  const { sessionId, modes } = await editor.agent.request('session/new', { cwd: root, mcpServers: [] });
  const prompt = (text: string) =>
    editor.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  return { ...editor, root, model, ran, sessionId, modes, prompt, makeAgent };
}

/** The text of the chunks of one kind. */
export const textIn = (updates: readonly SessionUpdate[], kind = 'agent_message_chunk'): string =>
  updates
    .map((update) =>
      update.sessionUpdate === kind && 'content' in update && isText(update.content) ? update.content.text : '',
    )
    .join('');

const isText = (content: unknown): content is { text: string } =>
  typeof content === 'object' && content !== null && 'text' in content;

/** The updates of one call, in order. */
export const updatesOf = (updates: readonly SessionUpdate[], callId: string) =>
  updates.filter((update) => 'toolCallId' in update && update.toolCallId === callId);
