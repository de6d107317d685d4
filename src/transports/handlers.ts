/**
 * Conversations over HTTP, as one function from Request to Response. Rule: nobody reads or acts without being authorized; a request is
 * bounded and read whole before it acts; a client that goes away ends nothing but its own request.
 */
import type { Json } from '../../machines/internal.ts';
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { ConfigurationError } from '../errors.ts';
import { type Ports, platformPorts } from '../runtime/hostPorts.ts';
import { callback, checkOptionsOf, hasMethods, numberOrInfinity, object, text, whole } from '../validation.ts';
import { decideCall, failureOf, fieldsOf, malformed, sendMessage, settleCall, textOf } from './clientActs.ts';
import { type Authorize, authorizedBy, json, jsonBody, mustHaveMethod, notFound, refusal } from './httpRequests.ts';
import { eventStream } from './sentEvents.ts';
import { type Sessions, sessions } from './sessions.ts';

export interface HandlerOptions {
  authorize: Authorize;
  /** What stands before `/conversations`. */
  basePath?: string;
  /** Of one request: 8 MiB, room for an image. */
  bodyBytesMax?: number;
  /** Characters of live signals that may wait for one reader: 1 MiB. */
  waitingMax?: number;
  /** How long a reader may take nothing, and how long it may hear nothing: 15 s. */
  beatMs?: number;
  /** Shared with other transports of the same agent; its own where it is not given. */
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

/** Throws ConfigurationError for an option that cannot work. */
export function createHandlers(agent: Agent, options: HandlerOptions): (request: Request) => Promise<Response> {
  checkOptionsOf('createHandlers', options, optionsValidator);
  if (options.authorize === undefined)
    throw new ConfigurationError('createHandlers needs authorize, which says who may ask');
  const handlers = new Handlers(agent, options);
  return (request) => handlers.answer(request);
}

/** The words of a path behind the base; undefined where it is none of ours. */
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
    const found = id === undefined ? undefined : await this.#found(id);
    const conversation = found ?? (await this.#sessions.acquire(id));
    try {
      const location = `${this.#basePath}/conversations/${encodeURIComponent(conversation.id)}`;
      const { cwd, status } = conversation;
      return json(found ? 200 : 201, { id: conversation.id, cwd, status }, { location });
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
    const over = (): void => this.#sessions.release(conversation);
    return eventStream(conversation, { from, waitingMax, beatMs, setTimer: this.#setTimer, over });
  }

  async #with(id: string, act: (conversation: Conversation) => Promise<Response>): Promise<Response> {
    const conversation = await this.#acquired(id);
    try {
      return await act(conversation);
    } finally {
      this.#sessions.release(conversation);
    }
  }

  /** Reading must not make one, and neither must what was meant for one that is gone. */
  #acquired(id: string): Promise<Conversation> {
    return this.#sessions.acquire(id, { existing: true });
  }

  async #found(id: string): Promise<Conversation | undefined> {
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
