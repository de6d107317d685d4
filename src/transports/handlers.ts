/**
 * Serves conversations over HTTP, as one function from Request to Response. Rule: every request must be authorized. A
 * request body is bounded and read completely before it acts. A client that disconnects ends nothing but its own
 * request.
 */
import type { Json } from '../../machines/internal.ts';
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError } from '../errors.ts';
import { type Ports, platformPorts } from '../runtime/hostPorts.ts';
import { callback, checkOptionsOf, hasMethods, numberOrInfinity, object, text, whole } from '../validation.ts';
import { decideCall, failureOf, fieldsOf, malformed, sendMessage, settleCall, textOf } from './clientActs.ts';
import { type Authorize, authorizedBy, json, jsonBody, mustHaveMethod, notFound, refusal } from './httpRequests.ts';
import { eventStream } from './serverSentEvents.ts';
import { type Sessions, sessions } from './sessions.ts';

export interface HandlerOptions {
  authorize: Authorize;
  /** The path before `/conversations`. */
  basePath?: string;
  /** The limit of one request. Default: 8 MiB, enough for an image. */
  bodyBytesMax?: number;
  /** The characters of live signals that may wait for one reader. Default: 1 MiB. */
  waitingMax?: number;
  /** The longest time a reader may read nothing, and the longest time without a frame. Default: 15 s. */
  beatMs?: number;
  /** Shared with other transports of the same agent. Default: its own. */
  sessions?: Sessions;
  setTimer?: Ports['setTimer'];
}

const optionsValidator = object({
  authorize: callback,
  basePath: text,
  bodyBytesMax: whole(1),
  waitingMax: whole(1),
  beatMs: numberOrInfinity(1),
  sessions: { expected: 'what sessions() answers', test: (value) => hasMethods(value, 'acquire', 'release') },
  setTimer: callback,
});

/** Throws ConfigurationError for an invalid option. */
export function createHandlers(agent: Agent, options: HandlerOptions): (request: Request) => Promise<Response> {
  checkOptionsOf('createHandlers', options, optionsValidator);
  if (options.authorize === undefined)
    throw new ConfigurationError('createHandlers needs authorize, which says who may ask');
  const handlers = new Handlers(agent, options);
  return (request) => handlers.answer(request);
}

/** The parts of a path after the base; undefined for a path of another handler. */
function wordsOf(pathname: string, basePath: string): string[] | undefined {
  if (!pathname.startsWith(`${basePath}/`)) return undefined;
  try {
    return pathname
      .slice(basePath.length + 1)
      .split('/')
      .map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

const POSTS = ['messages', 'steer', 'follow-ups', 'decisions', 'settlements', 'cancel', 'resume'];

class Handlers {
  readonly #agent: Agent;
  readonly #options: HandlerOptions;
  readonly #basePath: string;
  readonly #sessions: Sessions;
  readonly #setTimer: Ports['setTimer'];

  constructor(agent: Agent, options: HandlerOptions) {
    const { basePath = '', setTimer = platformPorts.setTimer } = options;
    this.#agent = agent;
    this.#options = options;
    this.#basePath = basePath.replace(/\/+$/, '');
    this.#setTimer = setTimer;
    this.#sessions = options.sessions ?? sessions(agent, { setTimer });
  }

  async answer(request: Request): Promise<Response> {
    try {
      const by = await authorizedBy(request, this.#options.authorize);
      const url = new URL(request.url);
      const [first, id, act, ...rest] = wordsOf(url.pathname, this.#basePath) ?? [];
      if (first !== 'conversations' || id === '' || act === '' || rest.length > 0) throw notFound();
      if (id === undefined) return await this.#collection(request);
      if (act === undefined) return await this.#show(request, id);
      if (act === 'events') return await this.#events(request, url, id);
      if (!POSTS.includes(act)) throw notFound();
      mustHaveMethod(request, 'POST');
      const body = await jsonBody(request, this.#options.bodyBytesMax, act === 'cancel' || act === 'resume');
      return await this.#with(id, (conversation) => actOn(conversation, act, body, by));
    } catch (error) {
      return refusal(error);
    }
  }

  async #collection(request: Request): Promise<Response> {
    mustHaveMethod(request, 'GET', 'POST');
    if (request.method === 'GET') return json(200, await this.#agent.list());
    const id = textOf(fieldsOf(await jsonBody(request, this.#options.bodyBytesMax, true), ['id']), 'id');
    const existing = id === undefined ? undefined : await this.#existing(id);
    const conversation = existing ?? (await this.#sessions.acquire(id));
    try {
      const location = `${this.#basePath}/conversations/${encodeURIComponent(conversation.id)}`;
      const { cwd, status } = conversation;
      return json(existing ? 200 : 201, { id: conversation.id, cwd, status }, { location });
    } finally {
      this.#sessions.release(conversation);
    }
  }

  #show(request: Request, id: string): Promise<Response> {
    mustHaveMethod(request, 'GET');
    return this.#with(id, async (conversation) => {
      const { cwd, status, pending, unsettled, queue, state, inFlight } = conversation;
      const entries = conversation.log().length;
      const view = conversation.view();
      return json(200, { id, cwd, status, view, pending, unsettled, queue, state, inFlight, entries });
    });
  }

  async #events(request: Request, url: URL, id: string): Promise<Response> {
    mustHaveMethod(request, 'GET');
    const from = firstWanted(request.headers.get('last-event-id') ?? url.searchParams.get('lastEventId'));
    const conversation = await this.#acquired(id);
    const { waitingMax = 1_048_576, beatMs = 15_000 } = this.#options;
    const release = (): void => this.#sessions.release(conversation);
    return eventStream(conversation, { from, waitingMax, beatMs, setTimer: this.#setTimer, over: release });
  }

  async #with(id: string, act: (conversation: Conversation) => Promise<Response>): Promise<Response> {
    const conversation = await this.#acquired(id);
    try {
      return await act(conversation);
    } finally {
      this.#sessions.release(conversation);
    }
  }

  /** Opens only an existing conversation, so that reading or a late request never creates one. */
  #acquired(id: string): Promise<Conversation> {
    return this.#sessions.acquire(id, { existing: true });
  }

  async #existing(id: string): Promise<Conversation | undefined> {
    try {
      return await this.#acquired(id);
    } catch (error) {
      if (failureOf(error).code === 'not_found') return undefined;
      throw error;
    }
  }
}

function firstWanted(last: string | null): number {
  if (last === null || last === '') return 0;
  if (/^\d{1,15}$/.test(last)) return Number(last) + 1;
  throw malformed('Last-Event-ID to be the seq of an entry');
}

async function actOn(conversation: Conversation, act: string, body: unknown, by?: string): Promise<Response> {
  switch (act) {
    case 'messages':
      return json(202, await sendMessage(conversation, fieldsOf(body, ['content', 'kind', 'messageId'])));
    case 'steer':
    case 'follow-ups': {
      const kind = act === 'steer' ? 'steer' : 'followUp';
      return json(202, await sendMessage(conversation, { ...fieldsOf(body, ['content']), kind }));
    }
    case 'decisions':
      return json(200, await decideCall(conversation, body, by));
    case 'settlements':
      return json(200, await settleCall(conversation, fieldsOf(body, ['callId', 'how'])));
    case 'cancel':
      fieldsOf(body, []);
      await conversation.cancel();
      return json(200, { status: conversation.status } satisfies Json);
    default:
      fieldsOf(body, []);
      return json(202, { runId: conversation.resume().id });
  }
}
