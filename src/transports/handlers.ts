/**
 * Serves conversations over HTTP, as one function from Request to Response. Rule: every request must be authorized. A
 * request body is bounded and read completely before it acts. A client that disconnects ends nothing but its own
 * request.
 */
import type { Json } from '../../machines/internal.ts';
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { overviewOf } from '../conversation/served/conversationOverview.ts';
import { once } from '../conversation/served/repeatedRequests.ts';
import { ConfigurationError, RunchartError } from '../errors.ts';
import { type Ports, platformPorts } from '../runtime/hostPorts.ts';
import { callback, checkOptionsOf, hasMethods, numberOrInfinity, object, text, whole } from '../validation.ts';
import { type AllowedChoices, allowedChoices, allowValidator, CHOICES } from './allowedChoices.ts';
import {
  cancelRun,
  decideCall,
  fieldsOf,
  loggerValidator,
  malformed,
  pathIdOf,
  resumeRun,
  sendMessage,
  settleCall,
  shownResult,
} from './clientActs.ts';
import { deleteConversation, listPage } from './collectionActs.ts';
import { type Broadcast, broadcastOf } from './events/broadcast.ts';
import { type Frames, textFrames } from './events/eventFrames.ts';
import { EventStream, type EventStreamOptions, eventResponse } from './events/serverSentEvents.ts';
import { shownView } from './events/shownDiagnostics.ts';
import { entriesOf, resultOf } from './followed/eitherConversation.ts';
import { acquireOrCreate, beginReader, ownSessions } from './handlerSessions.ts';
import {
  type Authorize,
  authorizedCaller,
  basePathOf,
  type Caller,
  json,
  jsonBody,
  mustHaveMethod,
  notFound,
  refusal,
  requestKeyOf,
} from './httpRequests.ts';
import { type QuotaLimits, Quotas, quotaValidator, type RequestQuota } from './quotas.ts';
import type { Sessions } from './sessions.ts';
import { blobResponse } from './storedBytes.ts';

/** The options of `createHandlers`. */
export interface HandlerOptions {
  /** Called for each request. Answers true, the name of the caller or `{ by, owner }`; anything else refuses the request. */
  authorize: Authorize;
  /** The path before `/conversations`. */
  basePath?: string;
  /** The limit of one request. Default: 8 MiB, enough for an image. */
  bodyBytesMax?: number;
  /**
   * The characters of live signals that may wait for one reader. A slower one receives the whole streamed text after it
   * has caught up. Default: 1 MiB.
   */
  waitingMax?: number;
  /** The longest time a reader may read nothing, and the longest time without a frame. Default: 15 s. */
  beatMs?: number;
  /** The limits of simultaneous work; a request beyond them is answered 429 or 503, with `Retry-After`. */
  limits?: QuotaLimits;
  /** The choices that a message may make for its request; any other is answered 403 `not_allowed`. Default: nothing. */
  allow?: AllowedChoices;
  /** Shared with other transports of the same agent; it has limits of its own. Default: its own. */
  sessions?: Sessions;
  /**
   * `debug` receives one fact for each reader that was disconnected because it read nothing. `error` receives the whole error of each
   * failure of the server, which the client sees without details. Default: the console, for errors only.
   */
  logger?: { debug?(fact: object): void; error?(fact: object): void };
  /** The timer of a test. Default: the timer of the platform. */
  setTimer?: Ports['setTimer'];
  /** The clock of a test. Default: the clock of the platform. */
  now?: Ports['now'];
}

const optionsValidator = object({
  authorize: callback,
  basePath: text,
  bodyBytesMax: whole(1),
  waitingMax: whole(1),
  beatMs: numberOrInfinity(1),
  limits: quotaValidator,
  allow: allowValidator,
  sessions: { expected: 'what sessions() answers', test: (value) => hasMethods(value, 'acquire', 'release') },
  logger: loggerValidator,
  setTimer: callback,
  now: callback,
});

/**
 * Makes a handler of requests that serves an agent over HTTP and server-sent events. Throws ConfigurationError for an
 * invalid option.
 */
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
  readonly #quotas: Quotas;

  constructor(agent: Agent, options: HandlerOptions) {
    const { basePath = '', setTimer = platformPorts.setTimer } = options;
    this.#agent = agent;
    this.#options = options;
    this.#basePath = basePathOf(basePath);
    this.#setTimer = setTimer;
    this.#sessions = options.sessions ?? ownSessions(agent, options);
    this.#quotas = new Quotas(options.limits, options.now ?? platformPorts.now);
  }

  async answer(request: Request): Promise<Response> {
    let quota: RequestQuota | undefined;
    try {
      quota = this.#quotas.beginRequest();
      const caller = await authorizedCaller(request, this.#options.authorize);
      const url = new URL(request.url);
      const [first, id, act, ...rest] = wordsOf(url.pathname, this.#basePath) ?? [];
      const isNested = rest.length === 1 && (act === 'runs' || act === 'blobs');
      if (first !== 'conversations' || id === '' || act === '' || (rest.length > 0 && !isNested)) throw notFound();
      if (id === undefined) return await this.#collection(request, url, { caller, quota });
      if (act === undefined) return await this.#one(request, url, { id, caller });
      if (isNested) return await this.#nested(request, [act, rest[0] ?? ''], { id, caller });
      if (act === 'events') return await this.#events(request, url, { id, caller });
      if (!POSTS.includes(act)) throw notFound();
      mustHaveMethod(request, 'POST');
      const body = await this.#body(request, quota, act === 'cancel' || act === 'resume');
      const key = requestKeyOf(url, act, caller.by);
      const sender = { caller, allow: this.#options.allow, isRunIdWanted: isOverviewWanted(url), key };
      return await this.#with(id, caller, async (conversation) => {
        const answer = await once(conversation, key, () => actOn(conversation, act, body, sender));
        return json(ACCEPTED.has(act) ? 202 : 200, withOverview(url, conversation, answer));
      });
    } catch (error) {
      return refusal(error, this.#options.logger);
    } finally {
      quota?.end();
    }
  }

  #body(request: Request, quota: RequestQuota, isOptional: boolean): Promise<unknown> {
    return jsonBody(request, { bytesMax: this.#options.bodyBytesMax, isOptional, quota });
  }

  async #collection(
    request: Request,
    url: URL,
    { caller, quota }: { caller: Caller; quota: RequestQuota },
  ): Promise<Response> {
    mustHaveMethod(request, 'GET', 'POST');
    if (request.method === 'GET') return json(200, await listPage(this.#agent, url, caller));
    const id = pathIdOf(fieldsOf(await this.#body(request, quota, true), ['id']), 'id');
    return this.#create(url, id, caller);
  }

  async #create(url: URL, id: string | undefined, { owner }: Caller): Promise<Response> {
    const { conversation, isNew } = await acquireOrCreate(this.#sessions, this.#quotas, { id, owner });
    try {
      const location = `${this.#basePath}/conversations/${encodeURIComponent(conversation.id)}`;
      const { cwd, status } = conversation;
      const answer = withOverview(url, conversation, { id: conversation.id, cwd, status });
      return json(isNew ? 201 : 200, answer, { location });
    } finally {
      this.#sessions.release(conversation);
    }
  }

  async #one(request: Request, url: URL, { id, caller }: { id: string; caller: Caller }): Promise<Response> {
    mustHaveMethod(request, 'GET', 'DELETE');
    if (request.method === 'GET') return this.#show(url, { id, caller });
    await deleteConversation(this.#agent, this.#sessions, { id, caller });
    return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
  }

  #show(url: URL, { id, caller }: { id: string; caller: Caller }): Promise<Response> {
    return this.#with(id, caller, async (conversation) => {
      if (isOverviewWanted(url)) return json(200, withOverview(url, conversation, { id }));
      const { cwd, status, pending, unsettled, queue, state, inFlight } = conversation;
      const entries = entriesOf(conversation).length;
      const view = shownView(conversation.view());
      return json(200, { id, cwd, status, view, pending, unsettled, queue, state, inFlight, entries });
    });
  }

  /** The result of a run, or the bytes of an image or a file. */
  async #nested(
    request: Request,
    [kind, name]: [kind: string, name: string],
    { id, caller }: { id: string; caller: Caller },
  ): Promise<Response> {
    mustHaveMethod(request, 'GET');
    return this.#with(id, caller, async (conversation) =>
      kind === 'blobs'
        ? blobResponse(conversation, name, request)
        : json(200, shownResult(await resultOf(conversation, name), this.#options.logger)),
    );
  }

  async #events(request: Request, url: URL, { id, caller }: { id: string; caller: Caller }): Promise<Response> {
    mustHaveMethod(request, 'GET');
    const from = firstWanted(request.headers.get('last-event-id') ?? url.searchParams.get('lastEventId'));
    const leave = await beginReader(this.#sessions, this.#quotas, { id, owner: caller.owner });
    const begin = (broadcast: Broadcast, release?: () => void): Response =>
      eventResponse(
        this.#stream(broadcast, {
          from,
          beginning: isOverviewWanted(url) ? overviewFrames(broadcast) : undefined,
          over: (reason) => {
            leave();
            release?.();
            if (reason === 'slow') this.#options.logger?.debug?.({ event: 'reader-disconnected', conversation: id });
          },
        }),
      );
    try {
      if (this.#sessions.follow) return await this.#sessions.follow(id, caller, (broadcast) => begin(broadcast));
      // Sessions of the host: a reader holds its conversation.
      const conversation = await this.#acquired(id, caller);
      return begin(broadcastOf(conversation), () => this.#sessions.release(conversation));
    } catch (error) {
      leave();
      throw error;
    }
  }

  #stream(broadcast: Broadcast, options: Pick<EventStreamOptions, 'from' | 'beginning' | 'over'>): EventStream {
    const { waitingMax = 1_048_576, beatMs = 15_000 } = this.#options;
    return new EventStream(broadcast, { ...options, waitingMax, beatMs, setTimer: this.#setTimer });
  }

  async #with(
    id: string,
    caller: Caller,
    answer: (conversation: Conversation) => Promise<Response>,
  ): Promise<Response> {
    const conversation = await this.#acquired(id, caller);
    try {
      return await answer(conversation);
    } finally {
      this.#sessions.release(conversation);
    }
  }

  /** Opens only an existing conversation, so that reading or a late request never creates one. */
  #acquired(id: string, { owner }: Caller): Promise<Conversation> {
    return this.#sessions.acquire(id, { existing: true, owner });
  }
}

/** The overview contains the facts that a client needs besides entries and signals. An answer contains it if the address asks for it. */
const isOverviewWanted = ({ searchParams }: URL): boolean => searchParams.has('overview');

/** The first event of a stream. */
function overviewFrames({ conversation }: Broadcast): Frames | undefined {
  if (!conversation) return undefined;
  const overview = overviewOf(conversation, entriesOf(conversation));
  return textFrames(`event: overview\ndata: ${JSON.stringify(overview)}\n\n`);
}

function withOverview(url: URL, conversation: Conversation, answer: { [key: string]: Json }): object {
  return isOverviewWanted(url) ? { ...answer, overview: overviewOf(conversation, entriesOf(conversation)) } : answer;
}

/** Tools may trust the name of the sender, so only `authorize` provides it. */
const forgedName = (): RunchartError =>
  new RunchartError(
    'not_allowed',
    'by is not the name that this server authenticated; leave it out. Nothing was changed',
  );

/** A client that could choose it could deny calls that wait for another person. */
const policyOfServer = (): RunchartError =>
  new RunchartError(
    'not_allowed',
    'whileSuspended is a policy that only the server decides (createAgent({ policies })); leave it out. Nothing was changed',
  );

function firstWanted(last: string | null): number {
  if (last === null || last === '') return 0;
  if (/^\d{1,15}$/.test(last)) return Number(last) + 1;
  throw malformed('Last-Event-ID to be the seq of an entry');
}

interface Sender {
  caller: Caller;
  allow: AllowedChoices | undefined;
  /** Answers name the run also where a message joins a running one. */
  isRunIdWanted: boolean;
  /** The key of a request that may be repeated. */
  key: string | undefined;
}

type Answer = { [key: string]: Json };

/** Requests whose effect is under way when they are answered. */
const ACCEPTED: ReadonlySet<string> = new Set(['messages', 'steer', 'follow-ups', 'resume']);

async function actOn(
  conversation: Conversation,
  act: string,
  body: unknown,
  { caller, allow, isRunIdWanted, key }: Sender,
): Promise<Answer> {
  const { by } = caller;
  const onRun = isRunIdWanted ? () => {} : undefined;
  switch (act) {
    case 'messages': {
      const fields = fieldsOf(body, ['content', 'kind', 'messageId', 'by', 'whileSuspended', ...CHOICES]);
      if (fields.by !== undefined && fields.by !== by) throw forgedName();
      if (fields.whileSuspended !== undefined) throw policyOfServer();
      const options = { ...senderOf(by), ...allowedChoices(fields, allow), request: key };
      return sendMessage(conversation, fields, options, onRun);
    }
    case 'steer':
    case 'follow-ups': {
      const kind = act === 'steer' ? 'steer' : 'followUp';
      const options = { ...senderOf(by), request: key };
      return sendMessage(conversation, { ...fieldsOf(body, ['content']), kind }, options, onRun);
    }
    case 'decisions':
      return decideCall(conversation, body, by, key);
    case 'settlements':
      return settleCall(conversation, fieldsOf(body, ['callId', 'how']), key);
    case 'cancel':
      return { status: await cancelRun(conversation, fieldsOf(body, ['runId']), key) };
    default:
      return resumeRun(conversation, fieldsOf(body, ['resumptionId']), key);
  }
}

/** The name that the transport authenticated. A client cannot replace it. */
const senderOf = (by: string | undefined): { by?: string } => (by === undefined ? {} : { by });
