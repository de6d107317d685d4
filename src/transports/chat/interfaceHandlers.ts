/**
 * HTTP handlers for AG-UI and AI SDK pages: each request starts one run and streams it. Rule: the log is the history, regardless of the
 * messages that the page sends. A decision names the suspension that the page showed, and a late answer starts nothing. Every
 * response ends.
 */
import type { Agent } from '../../agent.ts';
import type { Policies } from '../../agentPolicies.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { ConfigurationError, RunchartError } from '../../errors.ts';
import { type Ports, platformPorts } from '../../runtime/hostPorts.ts';
import {
  callback,
  checkOptionsOf,
  choice,
  hasMethods,
  numberOrInfinity,
  object,
  text,
  whole,
} from '../../validation.ts';
import { type AllowedChoices, allowedChoices, allowValidator } from '../allowedChoices.ts';
import { type FailureLogger, type Fields, loggerValidator, malformed } from '../clientActs.ts';
import { activeRun, entriesOf } from '../followed/eitherConversation.ts';
import { acquireOrCreate, beginReader, ownSessions } from '../handlerSessions.ts';
import { type Authorize, authorizedCaller, type Caller, json, jsonBody, refusal } from '../httpRequests.ts';
import { type QuotaLimits, Quotas, quotaValidator, type RequestQuota } from '../quotas.ts';
import type { Sessions } from '../sessions.ts';
import { agUiEvents } from './agUi.ts';
import { snapshotsFor } from './agUiHistory.ts';
import { inlineUiParts } from './chatParts.ts';
import { chatPath } from './chatPaths.ts';
import {
  agUiDecision,
  type ChatRequest,
  isFields,
  listOf,
  readAgUi,
  readUiMessages,
  uiDecision,
} from './chatRequests.ts';
import { beginChat, checkChatMessage } from './chatRuns.ts';
import { ChatStream, streamed } from './chatStream.ts';
import { acceptPageTools } from './pageTools.ts';
import type { Piece } from './pieces.ts';
import { uiMessagesOf } from './uiHistory.ts';
import { UiMessageChunks } from './uiMessages.ts';

/** The options of `agUiHandler` and `uiMessageHandler`. */
export interface ChatHandlerOptions {
  /** Called for each request. Answers true, the name of the caller or `{ by, owner }`; anything else refuses the request. */
  authorize: Authorize;
  /** The path of the chat. Default: any, and the last segments of a path count. */
  basePath?: string;
  /** The limit of one request. Default: 8 MiB. */
  bodyBytesMax?: number;
  /** The effect of a message on waiting calls. Default: `denyAndRun`. */
  whileSuspended?: Policies['whileSuspended'];
  /** The effect of a page's disconnection on the run of its request. Default: `continue`. */
  onDisconnect?: 'continue' | 'cancel';
  /** The time without an event after which a comment is sent. Default: 15 s. */
  beatMs?: number;
  /** The limits of simultaneous work; a request beyond them is answered 429 or 503, with `Retry-After`. */
  limits?: QuotaLimits;
  /** The choices that a page's message may make for its request; any other is answered 403 `not_allowed`. Default: nothing. */
  allow?: AllowedChoices;
  /** Shared with other transports of the same agent; it has limits of its own. Default: its own. */
  sessions?: Sessions;
  /** `error` receives the whole error of each failure of the server, which the page sees without details. Default: the console. */
  logger?: FailureLogger;
  /** The timer of a test. Default: the timer of the platform. */
  setTimer?: Ports['setTimer'];
  /** The clock of a test. Default: the clock of the platform. */
  now?: Ports['now'];
}

const optionsValidator = object({
  authorize: callback,
  basePath: text,
  bodyBytesMax: whole(1),
  whileSuspended: choice('followUp', 'reject', 'denyAndRun'),
  onDisconnect: choice('continue', 'cancel'),
  beatMs: numberOrInfinity(1),
  limits: quotaValidator,
  allow: allowValidator,
  sessions: { expected: 'what sessions() answers', test: (value) => hasMethods(value, 'acquire', 'release') },
  logger: loggerValidator,
  setTimer: callback,
  now: callback,
});

type Encode = (piece: Piece) => readonly object[];

interface Protocol {
  read(body: Fields): ChatRequest;
  /** The fields among which a page chooses. */
  choices(body: Fields): Fields;
  /** The action of an answer. Throws RunchartError if the answer is invalid. */
  decision(answer: unknown): Record<string, unknown>;
  /** `from`: the length of the log before the request. */
  encoder(
    body: Fields,
    request: ChatRequest,
    before: { conversation: Conversation; from: number },
  ): Encode | Promise<Encode>;
  /** The encoder of a reply from its beginning, if the protocol has a history. */
  replayEncoder?(): Encode;
  /** The frame after the last event. */
  last: string;
  headers: Record<string, string>;
}

async function* framesOf(pieces: AsyncGenerator<Piece>, encode: Encode) {
  for await (const piece of pieces) yield* encode(piece);
}

interface Begun {
  chat: ChatStream;
  pieces: AsyncGenerator<Piece>;
  encode: Encode;
  /** Cancelled if the page disconnects. */
  run?: Run | undefined;
}

class ChatHandler {
  readonly #options: ChatHandlerOptions;
  readonly #protocol: Protocol;
  readonly #sessions: Sessions;
  readonly #quotas: Quotas;

  constructor(agent: Agent, options: ChatHandlerOptions, protocol: Protocol) {
    this.#options = options;
    this.#protocol = protocol;
    this.#sessions = options.sessions ?? ownSessions(agent, options);
    this.#quotas = new Quotas(options.limits, options.now ?? platformPorts.now);
  }

  async answer(request: Request): Promise<Response> {
    let quota: RequestQuota | undefined;
    try {
      quota = this.#quotas.beginRequest();
      const caller = await authorizedCaller(request, this.#options.authorize);
      const path = chatPath(request, this.#options.basePath, this.#protocol.replayEncoder !== undefined);
      if (path.kind === 'chat') return await this.#chat(request, caller, quota);
      if (path.kind === 'stop') return await this.#stop(path.id, caller);
      const found = path.kind === 'history' ? this.#history(path.id, caller) : this.#replay(path.id, caller);
      return await found.catch((error: unknown) => {
        if (!RunchartError.isRunchartError(error) || error.code !== 'not_found') throw error;
        return path.kind === 'history' ? json(200, []) : this.#nothing();
      });
    } catch (error) {
      return refusal(error, this.#options.logger);
    } finally {
      quota?.end();
    }
  }

  #nothing(): Response {
    return new Response(null, { status: 204, headers: { 'cache-control': 'no-store' } });
  }

  async #chat(request: Request, { by, owner }: Caller, quota: RequestQuota): Promise<Response> {
    const { bodyBytesMax, whileSuspended = 'denyAndRun', allow } = this.#options;
    const { read, choices, decision, encoder } = this.#protocol;
    const body = await jsonBody(request, { bytesMax: bodyBytesMax, quota });
    if (!isFields(body)) throw malformed('a JSON object');
    const chatRequest = read(body);
    const chosen = allowedChoices(choices(body), allow);
    if (chatRequest.message) checkChatMessage(chatRequest.message, chosen);
    const { conversation: id, message } = chatRequest;
    const acquire = async (): Promise<Conversation> =>
      // An answer must refer to an existing conversation.
      message
        ? (await acquireOrCreate(this.#sessions, this.#quotas, { id, owner })).conversation
        : this.#sessions.acquire(id, { existing: true, owner });
    return this.#stream({ id, owner }, acquire, async (conversation) => {
      const begun = await beginChat(conversation, chatRequest, { by, chosen, whileSuspended, decision });
      return { ...begun, encode: await encoder(body, chatRequest, { conversation, from: begun.from }) };
    }) as Promise<Response>;
  }

  #history(id: string, caller: Caller): Promise<Response> {
    return this.#with(id, caller, async (conversation) => {
      const messages = uiMessagesOf(conversation.log());
      for (const { parts } of messages) await inlineUiParts(parts, conversation);
      return json(200, messages);
    });
  }

  async #replay(id: string, { owner }: Caller): Promise<Response> {
    const acquire = () => this.#sessions.acquire(id, { existing: true, owner });
    const response = await this.#stream({ id, owner }, acquire, (conversation) => {
      const run = activeRun(conversation);
      const encode = this.#protocol.replayEncoder?.();
      if (!run || !encode) return undefined;
      const state = { from: entriesOf(conversation).length, callIds: new Set<string>(), queued: new Set<string>() };
      const chat = new ChatStream(conversation, state);
      return { chat, pieces: chat.wholeReply(run), encode };
    });
    return response ?? this.#nothing();
  }

  #stop(id: string, caller: Caller): Promise<Response> {
    return this.#with(id, caller, async (conversation) => {
      await conversation.cancel();
      return json(200, { status: conversation.status });
    });
  }

  async #with(
    id: string,
    { owner }: Caller,
    act: (conversation: Conversation) => Promise<Response>,
  ): Promise<Response> {
    const conversation = await this.#sessions.acquire(id, { existing: true, owner });
    try {
      return await act(conversation);
    } finally {
      this.#sessions.release(conversation);
    }
  }

  /** Streams the run that begins. The conversation is held until the stream is over. Undefined if nothing begins. */
  async #stream(
    place: { id: string; owner: string | undefined },
    acquire: () => Promise<Conversation>,
    begin: (conversation: Conversation) => Begun | undefined | Promise<Begun>,
  ): Promise<Response | undefined> {
    const { beatMs = 15_000, setTimer = platformPorts.setTimer, onDisconnect } = this.#options;
    const { last, headers } = this.#protocol;
    const leave = await beginReader(this.#sessions, this.#quotas, place);
    let conversation: Conversation | undefined;
    let begun: Begun | undefined;
    const over = (isDisconnected: boolean): void => {
      leave();
      begun?.chat.disconnect();
      // An unreachable holder is ignored, because the page is gone.
      if (isDisconnected && onDisconnect === 'cancel') void begun?.run?.cancel().catch(() => undefined);
      if (conversation) this.#sessions.release(conversation);
      conversation = undefined;
    };
    try {
      conversation = await acquire();
      begun = await begin(conversation);
      if (begun) {
        const frames = framesOf(begun.pieces, begun.encode);
        return streamed(frames, { last, headers, beatMs, setTimer, over });
      }
    } catch (error) {
      over(false);
      throw error;
    }
    over(false);
    return undefined;
  }
}

function handlerOf(agent: Agent, options: ChatHandlerOptions, name: string, protocol: Protocol) {
  checkOptionsOf(name, options, optionsValidator);
  if (options.authorize === undefined) throw new ConfigurationError(`${name} needs authorize, which says who may ask`);
  const handler = new ChatHandler(agent, options, protocol);
  return (request: Request): Promise<Response> => handler.answer(request);
}

/** Handles a POST of a RunAgentInput and responds with its events. Throws ConfigurationError for an invalid option. */
export function agUiHandler(agent: Agent, options: ChatHandlerOptions): (request: Request) => Promise<Response> {
  acceptPageTools(agent);
  return handlerOf(agent, options, 'agUiHandler', {
    read: readAgUi,
    // The protocol has fields of its own named `tools` and `context`.
    choices: ({ forwardedProps }) => (isFields(forwardedProps) ? forwardedProps : {}),
    decision: agUiDecision,
    async encoder(body, { results }, { conversation, from }) {
      const snapshots = await snapshotsFor(body, conversation, from);
      const { runId } = body;
      const own = new Set(listOf(body.messages).map(({ id }) => id));
      let isBegun = false;
      return (piece) => {
        // The page has its own messages already, results of its tools among them, and its own id for the run.
        if (piece.kind === 'user' && (piece.message === 'direct' || own.has(piece.messageId))) return [];
        if (piece.kind === 'result' && results?.has(piece.callId)) return [];
        const events = agUiEvents(typeof runId === 'string' && 'runId' in piece ? { ...piece, runId } : piece);
        if (isBegun) return events;
        isBegun = true;
        return [...events, ...snapshots];
      };
    },
    last: '',
    headers: {},
  });
}

/**
 * Handles the requests of an AI SDK chat: messages, its history, its running reply and its stop. Throws ConfigurationError
 * for an invalid option.
 */
export const uiMessageHandler = (
  agent: Agent,
  options: ChatHandlerOptions,
): ((request: Request) => Promise<Response>) =>
  handlerOf(agent, options, 'uiMessageHandler', {
    read: readUiMessages,
    choices: (body) => body,
    decision: uiDecision,
    encoder(_, { parts }) {
      const chunks = new UiMessageChunks(parts);
      return (piece) => chunks.take(piece);
    },
    replayEncoder() {
      const chunks = new UiMessageChunks();
      return (piece) => chunks.take(piece);
    },
    last: '[DONE]',
    headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
  });
