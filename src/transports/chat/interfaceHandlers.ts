/**
 * HTTP handlers for AG-UI and AI SDK pages: each request starts one run and streams it. Rule: the log is the history,
 * whatever the page sends. A disconnected page ends no run. A decision names the suspension that the page showed, and a
 * late answer starts nothing. Every response ends.
 */
import { type Decision, entryOfMessage, type LogEntry } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import type { Policies } from '../../agentPolicies.ts';
import { type Conversation, loadDecisions } from '../../conversation/conversation.ts';
import type { Run } from '../../conversation/run.ts';
import { ConfigurationError } from '../../errors.ts';
import { wrongAnswer } from '../../runtime/commands.ts';
import { type Ports, platformPorts } from '../../runtime/hostPorts.ts';
import { callback, checkOptionsOf, choice, hasMethods, numberOrInfinity, object, whole } from '../../validation.ts';
import { decideCall, type Fields, malformed } from '../clientActs.ts';
import { type Authorize, authorizedBy, jsonBody, mustHaveMethod, refusal } from '../httpRequests.ts';
import { type Sessions, sessions } from '../sessions.ts';
import { agUiEvents, interruptId } from './agUi.ts';
import {
  agUiDecision,
  type ChatMessage,
  type ChatRequest,
  isFields,
  listOf,
  readAgUi,
  readUiMessages,
  uiDecision,
} from './chatRequests.ts';
import { ChatStream, streamed } from './chatStream.ts';
import type { Piece } from './streamFold.ts';
import { UiMessageChunks } from './uiMessages.ts';

export interface ChatHandlerOptions {
  authorize: Authorize;
  /** The limit of one request. Default: 8 MiB. */
  bodyBytesMax?: number;
  /** The effect of a message on waiting calls. Default: `denyAndRun`. */
  whileSuspended?: Policies['whileSuspended'];
  /** The time without an event after which a comment is sent. Default: 15 s. */
  beatMs?: number;
  /** Shared with other transports of the same agent. Default: its own. */
  sessions?: Sessions;
  setTimer?: Ports['setTimer'];
}

const optionsValidator = object({
  authorize: callback,
  bodyBytesMax: whole(1),
  whileSuspended: choice('followUp', 'reject', 'denyAndRun'),
  beatMs: numberOrInfinity(1),
  sessions: { expected: 'what sessions() answers', test: (value) => hasMethods(value, 'acquire', 'release') },
  setTimer: callback,
});

interface Protocol {
  read(body: Fields): ChatRequest;
  /** The action of an answer. Throws RunchartError if the answer is invalid. */
  decision(answer: unknown): Record<string, unknown>;
  encoder(body: Fields, request: ChatRequest): (piece: Piece) => readonly object[];
  /** The frame after the last event. */
  last: string;
  headers: Record<string, string>;
}

/**
 * Decides each waiting suspension that was answered; other answers are ignored. If one answer is invalid, rejects
 * before any decision.
 */
async function decideAll(conversation: Conversation, request: ChatRequest, protocol: Protocol, by?: string) {
  const { readDecision } = await loadDecisions();
  const decisions = conversation.pending.flatMap((call): Decision[] => {
    const { callId, suspension } = call;
    const answer = request.answers.get(interruptId(call));
    if (answer === undefined) return [];
    // The page names the suspension that it answers. The transport sets who answers.
    const decision = readDecision({ ...protocol.decision(answer), callId, suspension, by: undefined });
    const refused = wrongAnswer(call, decision);
    if (refused) throw refused;
    return [decision];
  });
  for (const decision of decisions) await decideCall(conversation, decision, by);
}

type Stop = Extract<LogEntry, { type: 'run-stop' }>;

/**
 * The end of the last cycle, if no answer matches a waiting call and nothing else can continue. A crash counts as no
 * end.
 */
function endBefore(conversation: Conversation, { answers }: ChatRequest): Stop | undefined {
  const { status, pending } = conversation;
  if (answers.size === 0 || (status !== 'idle' && status !== 'error')) return undefined;
  if (pending.some((call) => answers.has(interruptId(call)))) return undefined;
  const stops = conversation.log().filter((entry): entry is Stop => entry.type === 'run-stop');
  const stop = stops.at(-1);
  return stop?.cause === 'crash' ? undefined : stop;
}

/** The call id in the id of an interrupt. */
const callOf = (interrupt: string): string => interrupt.slice(interrupt.indexOf('/') + 1);

async function* framesOf(pieces: AsyncGenerator<Piece>, encode: (piece: Piece) => readonly object[]) {
  for await (const piece of pieces) yield* encode(piece);
}

const textIn = (content: readonly { type: string; text?: string }[]): string =>
  content.map(({ text = '' }) => text).join('');

function handlerOf(agent: Agent, options: ChatHandlerOptions, name: string, protocol: Protocol) {
  checkOptionsOf(name, options, optionsValidator);
  const { authorize, bodyBytesMax, whileSuspended = 'denyAndRun', beatMs = 15_000 } = options;
  const { setTimer = platformPorts.setTimer, sessions: shared = sessions(agent, { setTimer }) } = options;
  if (authorize === undefined) throw new ConfigurationError(`${name} needs authorize, which says who may ask`);

  /** A message that reuses an id with other content is a new message. */
  function send(conversation: Conversation, { id, content }: ChatMessage): Run {
    const earlier = id === undefined ? undefined : entryOfMessage(conversation.log(), id);
    const isOther = earlier && 'content' in earlier && textIn(earlier.content) !== textIn(content);
    return conversation.send(content, { whileSuspended, ...(id !== undefined && !isOther && { messageId: id }) });
  }

  /** Starts the requested run. Rejects if the conversation refuses it. */
  async function begin(conversation: Conversation, request: ChatRequest, by?: string) {
    const stop = endBefore(conversation, request);
    const waiting = conversation.pending.map(({ callId }) => callId);
    const chat = new ChatStream(conversation, {
      from: conversation.log().length,
      callIds: new Set([...waiting, ...[...request.answers.keys()].map(callOf)]),
      queued: new Set(conversation.queue.map(({ messageId }) => messageId)),
    });
    await decideAll(conversation, request, protocol, by);
    const run = (): Run => (request.message ? send(conversation, request.message) : conversation.resume());
    return { chat, pieces: stop ? chat.endOf(stop) : chat.piecesOf(run()) };
  }

  async function answer(request: Request): Promise<Response> {
    const by = await authorizedBy(request, authorize);
    mustHaveMethod(request, 'POST');
    const body = await jsonBody(request, bodyBytesMax);
    if (!isFields(body)) throw malformed('a JSON object');
    const chatRequest = protocol.read(body);
    // An answer must refer to an existing conversation.
    const conversation = await shared.acquire(chatRequest.conversation, chatRequest.message ? {} : { existing: true });
    let isHeld = true;
    const releaseSession = (): void => {
      if (isHeld) shared.release(conversation);
      isHeld = false;
    };
    try {
      const { chat, pieces } = await begin(conversation, chatRequest, by);
      const { last, headers } = protocol;
      const onDisconnect = (): void => {
        chat.disconnect();
        releaseSession();
      };
      return streamed(framesOf(pieces, protocol.encoder(body, chatRequest)), {
        last,
        headers,
        beatMs,
        setTimer,
        over: onDisconnect,
      });
    } catch (error) {
      releaseSession();
      throw error;
    }
  }
  return (request: Request): Promise<Response> => answer(request).catch(refusal);
}

/** Handles a POST of a RunAgentInput and responds with its events. Throws ConfigurationError for an invalid option. */
export const agUiHandler = (agent: Agent, options: ChatHandlerOptions): ((request: Request) => Promise<Response>) =>
  handlerOf(agent, options, 'agUiHandler', {
    read: readAgUi,
    decision: agUiDecision,
    encoder({ runId, messages }) {
      const own = new Set(listOf(messages).map(({ id }) => id));
      return (piece) => {
        // The page has its own messages already, and its own id for the run.
        if (piece.kind === 'user' && (piece.message === 'direct' || own.has(piece.messageId))) return [];
        return agUiEvents(typeof runId === 'string' && 'runId' in piece ? { ...piece, runId } : piece);
      };
    },
    last: '',
    headers: {},
  });

/**
 * Handles a POST of an AI SDK chat and responds with a UI message stream. Throws ConfigurationError for an invalid
 * option.
 */
export const uiMessageHandler = (
  agent: Agent,
  options: ChatHandlerOptions,
): ((request: Request) => Promise<Response>) =>
  handlerOf(agent, options, 'uiMessageHandler', {
    read: readUiMessages,
    decision: uiDecision,
    encoder(_, { parts }) {
      const chunks = new UiMessageChunks(parts);
      return (piece) => chunks.take(piece);
    },
    last: '[DONE]',
    headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
  });
