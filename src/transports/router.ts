/**
 * Routes the requests of a transport to conversations, and sends their output back. Rule: requests about one
 * conversation start in the order of arrival. Output waits for the transport, and while it is slow no further request
 * is read. The end of the transport stops no run.
 */
import type { Json } from '../../machines/internal.ts';
import type { Agent } from '../agent.ts';
import { readMessage } from '../content/content.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Run, RunResult } from '../conversation/run.ts';
import {
  contentOf,
  decideCall,
  type FailureLogger,
  failureOf,
  sendMessage,
  settleCall,
  shownResult,
} from './clientActs.ts';
import { broadcastOf } from './events/broadcast.ts';
import { ClientFeed } from './events/clientFeed.ts';
import { followedOf } from './followed/followedConversation.ts';
import { type Sessions, sessions } from './sessions.ts';
import { type Outgoing, type ReadMessage, readIncoming, requestIdOf, type Transport } from './wireMessages.ts';

/** The options of `route`. */
export interface RouteOptions {
  /**
   * If true, each turn ends with a `turn-result` and the conversation continues. Otherwise each turn ends with a `result`, and
   * the conversation is closed, unless a call waits or `sessions` is set. Default: false.
   */
  multiTurn?: boolean;
  /** The contents of `system-init`. Default: those of the agent. */
  about?: { model: string; tools: readonly string[]; permissionMode?: string };
  /** The open conversations, shared with other transports. Default: its own. */
  sessions?: Sessions;
  /** Limits every request to the conversations of this owner. */
  owner?: string;
  /** After the input ends, waits for the running turns and sends their results. */
  drain?: boolean;
  /** `error` receives the whole error of each failure of the server, which the client sees without details. Default: the console. */
  logger?: FailureLogger;
}

/** Resolves when the transport ends; runs continue. */
export function route(agent: Agent, transport: Transport, options: RouteOptions = {}): Promise<void> {
  return new Router(agent, transport, options).run();
}

/** The most requests without an answer. */
const UNANSWERED_MAX = 64;
const LIVE_MAX = 1_048_576;

/** The permission mode is that of the permissions plugin in force. */
function aboutOf({ profile }: Partial<Agent>): NonNullable<RouteOptions['about']> {
  // A wrapper of an agent may have no profile.
  if (!profile) return { model: '', tools: [] };
  const { models, toolbox, plugins } = profile;
  const modes = plugins.flatMap((plugin) => ('mode' in plugin && typeof plugin.mode === 'string' ? [plugin.mode] : []));
  const tools = toolbox.specs.map(({ name }) => name);
  return { model: models[0].id, tools, permissionMode: modes[0] ?? 'default' };
}

interface Followed {
  conversation: Conversation;
  feed: ClientFeed;
  /** Resolves after the last message, and after the end of a session that ended with its result. */
  sent: Promise<void>;
  last: RunResult | undefined;
}

class Router {
  readonly #agent: Agent;
  readonly #transport: Transport;
  readonly #options: RouteOptions;
  readonly #sessions: Sessions;
  readonly #followed = new Map<string, Followed>();
  /** For each conversation, the seq of the next entry to send. */
  readonly #next = new Map<string, number>();
  /** The last request of each conversation, until it has started. */
  readonly #order = new Map<string, Promise<unknown>>();
  readonly #unanswered = new Set<Promise<void>>();
  readonly #turns = new Map<string, Promise<void>>();

  constructor(agent: Agent, transport: Transport, options: RouteOptions) {
    this.#agent = agent;
    this.#transport = transport;
    this.#options = options;
    this.#sessions = options.sessions ?? sessions(agent);
  }

  async run(): Promise<void> {
    try {
      for await (const input of this.#transport.read()) {
        const answering = this.#answer(input).catch(() => undefined);
        this.#unanswered.add(answering);
        void answering.then(() => this.#unanswered.delete(answering));
        if (this.#unanswered.size >= UNANSWERED_MAX) await Promise.race(this.#unanswered);
      }
      if (this.#options.drain) await this.#drained();
    } finally {
      for (const id of [...this.#followed.keys()]) this.#stopFollowing(id);
    }
  }

  async #drained(): Promise<void> {
    await Promise.all(this.#unanswered);
    while (this.#turns.size > 0) await Promise.all(this.#turns.values());
    const all = [...this.#followed.values()];
    for (const { feed } of all) feed.end();
    await Promise.all(all.map(({ sent }) => sent));
  }

  async #answer(input: unknown): Promise<void> {
    const requestId = requestIdOf(input);
    try {
      const message = readIncoming(input);
      const value = await (message.type === 'list' ? this.#list() : this.#act(message));
      if (requestId !== undefined) await this.#transport.write({ type: 'answer', requestId, value });
    } catch (error) {
      await this.#transport.write({
        ...failureOf(error, this.#options.logger),
        ...(requestId !== undefined && { requestId }),
      });
    }
  }

  async #list(): Promise<Json> {
    const { owner } = this.#options;
    const sessions = await this.#agent.list(owner === undefined ? {} : { owner });
    return sessions.map((session) => ({ ...session }));
  }

  async #act(message: ReadMessage): Promise<Json> {
    const { conversation: id } = message;
    const before = id === undefined ? undefined : this.#order.get(id);
    // A started request is not awaited: a cancel must overtake the run that it cancels.
    const begun = (before ?? Promise.resolve()).then(async () => {
      let followed = await this.#follow(message);
      // The session may have ended since.
      while (followed.feed.isEnded) followed = await this.#follow(message);
      const done = this.#begin(followed, message);
      done.catch(() => undefined);
      return { done };
    });
    const settled = begun.catch(() => undefined);
    if (id !== undefined) this.#order.set(id, settled);
    void settled.then(() => {
      if (id !== undefined && this.#order.get(id) === settled) this.#order.delete(id);
    });
    return (await begun).done;
  }

  async #begin(followed: Followed, { type, fields }: ReadMessage): Promise<Json> {
    const { conversation } = followed;
    const { id } = conversation;
    switch (type) {
      case 'user-message': {
        const { content, kind } = fields;
        const sent = await sendMessage(conversation, { content, kind }, {}, (run) => this.#turn(followed, run));
        return { conversation: id, ...sent };
      }
      case 'decision':
        return decideCall(conversation, fields.decision);
      case 'settlement':
        return settleCall(conversation, fields);
      case 'resume': {
        const run = conversation.resume();
        this.#turn(followed, run);
        const answer = await followedOf(conversation)?.answerTo(run);
        return { runId: answer?.runId ?? run.id };
      }
      case 'cancel':
        await conversation.cancel();
        return { status: conversation.status };
      default:
        this.#finish(followed);
        return null;
    }
  }

  /** Only a message may create a conversation. */
  async #follow(message: ReadMessage): Promise<Followed> {
    const { type, conversation: id, fields } = message;
    const current = id === undefined ? undefined : this.#followed.get(id);
    if (current && !current.feed.isEnded) return current;
    if (current) {
      await current.sent;
      return this.#follow(message);
    }
    // A message that is refused creates no conversation.
    if (type === 'user-message') readMessage(contentOf(fields));
    const conversation = await this.#sessions.acquire(id, {
      existing: type !== 'user-message',
      owner: this.#options.owner,
    });
    const next = this.#next.get(conversation.id);
    const feed = new ClientFeed(broadcastOf(conversation), next ?? 0, { sizeMax: LIVE_MAX });
    const sent = this.#send(conversation, feed);
    const followed = { conversation, feed, sent, last: undefined };
    this.#followed.set(conversation.id, followed);
    return followed;
  }

  async #send(conversation: Conversation, feed: ClientFeed): Promise<void> {
    const { id, cwd } = conversation;
    const { model, tools, permissionMode = 'default' } = this.#options.about ?? aboutOf(this.#agent);
    try {
      await this.#transport.write({
        type: 'system-init',
        version: 1,
        conversation: id,
        cwd,
        model,
        tools,
        permissionMode,
      });
      for (let item = await feed.take(); item; item = await feed.take()) {
        if ('entry' in item) {
          this.#next.set(id, item.entry.seq + 1);
          await this.#transport.write({ type: 'entry', conversation: id, entry: item.entry });
        } else if ('signal' in item) {
          await this.#transport.write({ type: 'live', conversation: id, signal: item.signal });
        } else {
          const message = item.message as Outgoing;
          await this.#transport.write(message);
          // The run may continue after a `close`. Its later entries are sent when the conversation is opened again.
          if (message.type === 'result') break;
        }
      }
    } catch {
      // If the transport accepts no more output, its input ends too.
    } finally {
      await this.#endSession(conversation, feed);
      this.#stopFollowing(id, feed);
    }
  }

  /**
   * A turn that ended with its `result` ends the session too. A waiting call, a run that continues and sessions that others share
   * keep the conversation open.
   */
  async #endSession(conversation: Conversation, feed: ClientFeed): Promise<void> {
    const { multiTurn, sessions } = this.#options;
    if (multiTurn || sessions || !feed.isEnded || followedOf(conversation)) return;
    if (conversation.status !== 'idle' && conversation.status !== 'error') return;
    // No request waits for the store's error here; the next opening reports it.
    await conversation.close().catch(() => undefined);
  }

  #turn(followed: Followed, run: Run): void {
    if (this.#turns.has(run.id)) return;
    const { conversation, feed } = followed;
    const turn = run.result.then((result) => {
      this.#turns.delete(run.id);
      followed.last = result;
      // After its close, a conversation has sent its last message.
      if (feed.isEnded) return;
      if (this.#options.multiTurn) {
        const shown = shownResult(result, this.#options.logger);
        feed.add({ type: 'turn-result', conversation: conversation.id, result: shown });
      } else if (conversation.status !== 'active') this.#finish(followed);
    });
    this.#turns.set(run.id, turn);
  }

  /** Sends the last message of a conversation, which may be opened again. */
  #finish({ conversation, feed, last }: Followed): void {
    const outcome = {
      subtype: last?.subtype ?? 'success',
      result: last?.text ?? '',
      turns: last?.turns ?? 0,
      costUsd: last ? last.costUsd : 0,
      exitReason: last?.cause ?? last?.termination ?? 'closed',
    };
    feed.add({ type: 'result', conversation: conversation.id, ...outcome });
    feed.end();
  }

  #stopFollowing(id: string, feed = this.#followed.get(id)?.feed): void {
    const followed = this.#followed.get(id);
    if (!followed || followed.feed !== feed) return;
    this.#followed.delete(id);
    feed.close();
    this.#sessions.release(followed.conversation);
  }
}
