/**
 * Maps the requests of a transport to conversations, and tells it what they do. Rule: requests about one conversation begin in the order in
 * which they came; what is told waits for the transport, and where that is slow nothing more is read; its end stops no run.
 */
import type { Json } from '../../machines/internal.ts';
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Run, RunResult } from '../conversation/run.ts';
import { decideCall, failureOf, sendMessage, settleCall } from './clientActs.ts';
import { Feed } from './clientFeed.ts';
import { type Sessions, sessions } from './sessions.ts';
import { type Outgoing, type ReadMessage, readIncoming, requestIdOf, type Transport } from './wireMessages.ts';

export interface RouteOptions {
  /** Turns are told as `turn-result` and the conversation goes on; without it, the end of a turn is its `result`. */
  multiTurn?: boolean;
  /** What `system-init` tells; of the agent where it is not given. */
  about?: { model: string; tools: readonly string[]; permissionMode?: string };
  sessions?: Sessions;
  /** When nothing more is read, waits for the turns that were begun, and tells them. */
  drain?: boolean;
}

/** Resolves when the transport ends; runs go on. */
export function route(agent: Agent, transport: Transport, options: RouteOptions = {}): Promise<void> {
  return new Router(agent, transport, options).run();
}

/** Requests that are not answered yet. */
const UNANSWERED_MAX = 64;
const LIVE_MAX = 1_048_576;

/** The mode is that of the rules that are in force. */
function aboutOf({ profile }: Partial<Agent>): NonNullable<RouteOptions['about']> {
  // What stands around an agent need not tell what it is made of.
  if (!profile) return { model: '', tools: [] };
  const { models, toolbox, plugins } = profile;
  const modes = plugins.flatMap((plugin) => ('mode' in plugin && typeof plugin.mode === 'string' ? [plugin.mode] : []));
  const tools = toolbox.specs.map(({ name }) => name);
  return { model: models[0].id, tools, permissionMode: modes[0] ?? 'default' };
}

interface Followed {
  conversation: Conversation;
  feed: Feed;
  told: Promise<void>;
  last: RunResult | undefined;
}

class Router {
  readonly #agent: Agent;
  readonly #transport: Transport;
  readonly #options: RouteOptions;
  readonly #sessions: Sessions;
  readonly #followed = new Map<string, Followed>();
  /** What was told of each conversation: the seq of the next entry. */
  readonly #next = new Map<string, number>();
  /** The last request of each conversation, until it has begun. */
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
      for await (const given of this.#transport.read()) {
        const answered = this.#answer(given).catch(() => undefined);
        this.#unanswered.add(answered);
        void answered.then(() => this.#unanswered.delete(answered));
        if (this.#unanswered.size >= UNANSWERED_MAX) await Promise.race(this.#unanswered);
      }
      if (this.#options.drain) await this.#drained();
    } finally {
      for (const id of [...this.#followed.keys()]) this.#unfollow(id);
    }
  }

  async #drained(): Promise<void> {
    await Promise.all(this.#unanswered);
    while (this.#turns.size > 0) await Promise.all(this.#turns.values());
    const all = [...this.#followed.values()];
    for (const { feed } of all) feed.end();
    await Promise.all(all.map(({ told }) => told));
  }

  async #answer(given: unknown): Promise<void> {
    const requestId = requestIdOf(given);
    try {
      const message = readIncoming(given);
      const value = await (message.type === 'list' ? this.#list() : this.#act(message));
      if (requestId !== undefined) await this.#transport.write({ type: 'answer', requestId, value });
    } catch (error) {
      await this.#transport.write({ ...failureOf(error), ...(requestId !== undefined && { requestId }) });
    }
  }

  async #list(): Promise<Json> {
    return (await this.#agent.list()).map((session) => ({ ...session }));
  }

  async #act(message: ReadMessage): Promise<Json> {
    const { conversation: id } = message;
    const before = id === undefined ? undefined : this.#order.get(id);
    // What has begun is not waited for: a cancel must overtake the run that it is for.
    const begun = (before ?? Promise.resolve()).then(async () => {
      const followed = await this.#follow(message);
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
        const sent = await sendMessage(conversation, { content, kind }, (run) => this.#turn(followed, run));
        return { conversation: id, ...sent };
      }
      case 'decision':
        return decideCall(conversation, fields.decision);
      case 'settlement':
        return settleCall(conversation, fields);
      case 'resume': {
        const run = conversation.resume();
        this.#turn(followed, run);
        return { runId: run.id };
      }
      case 'cancel':
        await conversation.cancel();
        return { status: conversation.status };
      default:
        this.#finish(followed);
        return null;
    }
  }

  /** A message may begin a conversation; nothing else does. */
  async #follow({ type, conversation: id }: Omit<ReadMessage, 'fields'>): Promise<Followed> {
    const known = id === undefined ? undefined : this.#followed.get(id);
    if (known && !known.feed.isEnded) return known;
    if (known) {
      await known.told;
      return this.#follow({ type, conversation: id });
    }
    const conversation = await this.#sessions.acquire(id, { existing: type !== 'user-message' });
    const next = this.#next.get(conversation.id);
    const feed = new Feed(conversation, next ?? 0, { sizeMax: LIVE_MAX });
    const told = this.#tell(conversation, feed);
    const followed = { conversation, feed, told, last: undefined };
    this.#followed.set(conversation.id, followed);
    return followed;
  }

  async #tell({ id, cwd }: Conversation, feed: Feed): Promise<void> {
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
          await this.#transport.write(item.said as Outgoing);
        }
      }
    } catch {
      // A transport that takes nothing any more ends its reading too.
    } finally {
      this.#unfollow(id, feed);
    }
  }

  #turn(followed: Followed, run: Run): void {
    if (this.#turns.has(run.id)) return;
    const { conversation, feed } = followed;
    const turn = run.result.then((result) => {
      this.#turns.delete(run.id);
      followed.last = result;
      if (this.#options.multiTurn) feed.say({ type: 'turn-result', conversation: conversation.id, result });
      else if (conversation.status !== 'active') this.#finish(followed);
    });
    this.#turns.set(run.id, turn);
  }

  /** The last that is told of it; it may be begun again. */
  #finish({ conversation, feed, last }: Followed): void {
    const said = {
      subtype: last?.subtype ?? 'success',
      result: last?.text ?? '',
      turns: last?.turns ?? 0,
      costUsd: last ? last.costUsd : 0,
      exitReason: last?.cause ?? last?.termination ?? 'closed',
    };
    feed.say({ type: 'result', conversation: conversation.id, ...said });
    feed.end();
  }

  #unfollow(id: string, feed = this.#followed.get(id)?.feed): void {
    const followed = this.#followed.get(id);
    if (!followed || followed.feed !== feed) return;
    this.#followed.delete(id);
    feed.close();
    this.#sessions.release(followed.conversation);
  }
}
