/**
 * The agent of an editor by the Agent Client Protocol: the sessions that one connection has opened, and the methods about
 * them. Invariant: a session is open once. Each works in the directory that the editor names for it. An error that a handler throws is an
 * error of the protocol.
 */
import { realpath } from 'node:fs/promises';
import { isAbsolute, resolve } from 'node:path';
import {
  type AgentApp,
  type AgentContext,
  agent,
  type ClientCapabilities,
  type InitializeResponse,
  type ListSessionsResponse,
  type McpServer,
  PROTOCOL_VERSION,
  RequestError,
} from '@agentclientprotocol/sdk';
import { ConfigurationError } from '../../errors.ts';
import { type CodingAgent, mustWorkIn } from '../codingAgent.ts';
import type { ServerEntry } from '../servers/serverEntries.ts';
import type { SessionPlace } from '../sessions/sessionPlace.ts';
import { removeSession } from '../sessions/sessionRemoval.ts';
import { newSessionId, sessionsIn, workingDirectory } from '../sessions/sessionStore.ts';
import { editorServers } from './editorServers.ts';
import { EditorSession } from './editorSession.ts';
import { answered, requestError } from './protocolErrors.ts';

export interface EditorAgentOptions {
  readonly version: string;
  /** Where sessions are listed, found and deleted. */
  readonly place: SessionPlace;
  /** Makes the agent of a session, with these MCP servers besides those of files. Rejects with ConfigurationError. */
  makeAgent(cwd: string, servers: readonly ServerEntry[]): Promise<CodingAgent>;
}

/** The parameters with which an editor opens a session. */
interface Opening {
  readonly sessionId: string;
  readonly cwd: string;
  readonly mcpServers?: readonly McpServer[];
}

const PAGE = 50;
const KEY_METHOD = {
  id: 'environment',
  name: 'API key',
  description:
    'Set OPENAI_API_KEY (and OPENAI_BASE_URL) in the settings of the editor for this agent, or in ~/.config/runchart/config.json.',
};

/** The directory as sessions name it. It may be gone. */
const realPlace = (cwd: string): Promise<string> => realpath(cwd).catch(() => resolve(cwd));

function mustBeAbsolute(cwd: string): void {
  if (!isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, 'expected cwd to be an absolute path');
}

export class EditorAgent {
  readonly app: AgentApp;
  readonly #options: EditorAgentOptions;
  readonly #sessions = new Map<string, Promise<EditorSession>>();
  #capabilities: ClientCapabilities | undefined;
  #isClosed = false;

  constructor(options: EditorAgentOptions) {
    this.#options = options;
    this.app = agent({ name: 'runchart' })
      .onRequest('initialize', ({ params }) => this.#initialize(params.clientCapabilities))
      .onRequest('authenticate', ({ params }) => answered(() => this.#authenticate(params.methodId)))
      .onRequest('session/new', ({ params, client }) => answered(() => this.#begin(params, client)))
      .onRequest('session/load', ({ params, client }) =>
        answered(async () => {
          const session = await this.#reopened(params, client);
          await session.replay();
          return { modes: session.modes };
        }),
      )
      .onRequest('session/resume', ({ params, client }) =>
        answered(async () => ({ modes: (await this.#reopened(params, client)).modes })),
      )
      .onRequest('session/list', ({ params }) => answered(() => this.#list(params.cwd, params.cursor)))
      .onRequest('session/close', ({ params }) => answered(() => this.#close(params.sessionId)))
      .onRequest('session/delete', ({ params }) => answered(() => this.#delete(params.sessionId)))
      .onRequest('session/set_mode', ({ params }) =>
        answered(async () => {
          (await this.#opened(params.sessionId)).setMode(params.modeId);
          return {};
        }),
      )
      .onRequest('session/prompt', ({ params, signal }) =>
        answered(async () => {
          const session = await this.#opened(params.sessionId);
          return { stopReason: await session.prompt(params.prompt, signal) };
        }),
      )
      .onNotification('session/cancel', async ({ params }) => {
        // A session that is not open has nothing to cancel.
        const session = await this.#sessions.get(params.sessionId)?.catch(() => undefined);
        session?.cancel();
      });
  }

  /** Closes every session, also those that are being opened. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const opened = await Promise.allSettled(this.#sessions.values());
    this.#sessions.clear();
    await Promise.allSettled(opened.map((each) => (each.status === 'fulfilled' ? each.value.close() : undefined)));
  }

  #initialize(capabilities: ClientCapabilities | undefined): InitializeResponse {
    this.#capabilities = capabilities;
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'runchart', title: 'runchart', version: this.#options.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} },
      },
      authMethods: [KEY_METHOD],
    };
  }

  /** The key comes from the environment and from files, so this only reads them again. */
  async #authenticate(methodId: string): Promise<Record<string, never>> {
    if (methodId !== KEY_METHOD.id) throw RequestError.invalidParams({ methodId }, 'there is no such method');
    const made = await this.#options.makeAgent(process.cwd(), []);
    await made.close();
    return {};
  }

  async #begin(params: Omit<Opening, 'sessionId'>, client: AgentContext) {
    const sessionId = newSessionId();
    const session = await this.#open({ ...params, sessionId }, client);
    return { sessionId, modes: session.modes };
  }

  /** Opens a stored session. A session that is open here stays open, and is not reopened during a request. */
  async #reopened(params: Opening, client: AgentContext): Promise<EditorSession> {
    const { sessionId, cwd } = params;
    mustBeAbsolute(cwd);
    const directory = await workingDirectory(cwd);
    const open = await this.#sessions.get(sessionId)?.catch(() => undefined);
    if (open?.isBusy) throw RequestError.invalidRequest({ sessionId }, 'a prompt is under way in this session');
    // A request that is refused leaves the session open.
    open?.mustWorkIn(directory);
    if (open) await this.#close(sessionId);
    await this.#mustExist(sessionId);
    return this.#open(params, client);
  }

  async #mustExist(sessionId: string): Promise<void> {
    const exists = await this.#options.place.has(sessionId).catch((error: unknown) => {
      // No session can have such a name.
      if (error instanceof ConfigurationError) return false;
      throw error;
    });
    if (!exists) throw RequestError.sessionNotFound(sessionId);
  }

  async #opened(sessionId: string): Promise<EditorSession> {
    const session = this.#sessions.get(sessionId);
    if (!session) throw RequestError.sessionNotFound(sessionId);
    return session;
  }

  async #open({ sessionId, cwd, mcpServers = [] }: Opening, client: AgentContext): Promise<EditorSession> {
    mustBeAbsolute(cwd);
    if (this.#sessions.has(sessionId)) throw RequestError.invalidRequest({ sessionId }, 'the session is being opened');
    const opening = this.#made(sessionId, cwd, editorServers(mcpServers), client);
    this.#sessions.set(sessionId, opening);
    try {
      return await opening;
    } catch (error) {
      this.#sessions.delete(sessionId);
      throw requestError(error);
    }
  }

  async #made(
    sessionId: string,
    cwd: string,
    servers: readonly ServerEntry[],
    client: AgentContext,
  ): Promise<EditorSession> {
    const made = await this.#options.makeAgent(cwd, servers);
    try {
      const conversation = await made.agent.open(sessionId);
      mustWorkIn(conversation, made.cwd);
      if (this.#isClosed) throw RequestError.invalidRequest({ sessionId }, 'the connection is closed');
      return new EditorSession(made, conversation, { client, capabilities: this.#capabilities });
    } catch (error) {
      // This closes the conversation too.
      await made.close();
      throw error;
    }
  }

  async #list(cwd?: string | null, cursor?: string | null): Promise<ListSessionsResponse> {
    const { store } = this.#options.place;
    const options = { limit: PAGE, ...(cursor != null && { cursor }) };
    const rows = cwd == null ? await store.list(options) : await sessionsIn(await realPlace(cwd), store, options);
    const last = rows.length === PAGE ? rows.at(-1)?.cursor : undefined;
    // Sessions without a message are not listed.
    const shown = rows.filter(({ title, turns }) => title !== undefined || turns > 0);
    const sessions = shown.map(({ id: sessionId, cwd, title = null, updatedAt }) => {
      return { sessionId, cwd, title, updatedAt: new Date(updatedAt).toISOString() };
    });
    return { sessions, ...(last !== undefined && { nextCursor: last }) };
  }

  async #close(sessionId: string): Promise<Record<string, never>> {
    const session = await this.#opened(sessionId);
    this.#sessions.delete(sessionId);
    await session.close();
    return {};
  }

  async #delete(sessionId: string): Promise<Record<string, never>> {
    if (this.#sessions.has(sessionId)) await this.#close(sessionId);
    else await this.#mustExist(sessionId);
    await removeSession(this.#options.place, sessionId);
    return {};
  }
}
