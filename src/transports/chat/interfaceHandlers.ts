/**
 * Handlers that a page of AG-UI or of the AI SDK talks to: one request, one run, streamed. Rule: the conversation has a history of its
 * own; a page that goes away ends nothing; a decision names the suspension that it was shown, and answers to what waits no more begin
 * nothing. Every request has an answer that ends.
 */
import type { Decision, LogEntry } from '../../../machines/internal.ts';
import type { Agent } from '../../agent.ts';
import type { Policies } from '../../agentPolicies.ts';
import { type Conversation, loadDecisions } from '../../conversation/conversation.ts';
import { entryOfMessage } from '../../conversation/repeatedMessages.ts';
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
  /** Of one request: 8 MiB. */
  bodyBytesMax?: number;
  /** What a message does to calls that wait; `denyAndRun` where it is not given. */
  whileSuspended?: Policies['whileSuspended'];
  /** How long a page may receive nothing before it is sent a comment: 15 s. */
  beatMs?: number;
  /** Shared with other transports of the same agent; its own where it is not given. */
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
  /** The action of an answer. Throws RunchartError for what is none. */
  decision(answer: unknown): Record<string, unknown>;
  encoder(body: Fields, request: ChatRequest): (piece: Piece) => readonly object[];
  /** After the last frame. */
  last: string;
  headers: Record<string, string>;
}

/**
 * Decides each of the suspensions that wait and were answered; an answer to anything else counts for nothing. Rejects before it
 * decides anything where one of the answers is no decision.
 */
async function decideAll(conversation: Conversation, request: ChatRequest, protocol: Protocol, by?: string) {
  const { readDecision } = await loadDecisions();
  const decisions = conversation.pending.flatMap((call): Decision[] => {
    const { callId, suspension } = call;
    const answer = request.answers.get(interruptId(call));
    if (answer === undefined) return [];
    // The page names the suspension that it answers; who answers is for the transport to say.
    const decision = readDecision({ ...protocol.decision(answer), callId, suspension, by: undefined });
    const refused = wrongAnswer(call, decision);
    if (refused) throw refused;
    return [decision];
  });
  for (const decision of decisions) await decideCall(conversation, decision, by);
}

type Stop = Extract<LogEntry, { type: 'run-stop' }>;

/** How the last cycle ended, where no answer is to what waits, and nothing may go on by it; a crash is no end that anybody chose. */
function endBefore(conversation: Conversation, { answers }: ChatRequest): Stop | undefined {
  const { status, pending } = conversation;
  if (answers.size === 0 || (status !== 'idle' && status !== 'error')) return undefined;
  if (pending.some((call) => answers.has(interruptId(call)))) return undefined;
  const stops = conversation.log().filter((entry): entry is Stop => entry.type === 'run-stop');
  const stop = stops.at(-1);
  return stop?.cause === 'crash' ? undefined : stop;
}

/** The id of an interrupt without its suspension. */
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

  /** A message with the id of another one that says something else is a new message. */
  function send(conversation: Conversation, { id, content }: ChatMessage): Run {
    const known = id === undefined ? undefined : entryOfMessage(conversation.log(), id);
    const isOther = known && 'content' in known && textIn(known.content) !== textIn(content);
    return conversation.send(content, { whileSuspended, ...(id !== undefined && !isOther && { messageId: id }) });
  }

  /** Begins what is asked for. Rejects with what refuses it. */
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
    const asked = protocol.read(body);
    // What answers something answers a conversation that exists.
    const conversation = await shared.acquire(asked.conversation, asked.message ? {} : { existing: true });
    let held = true;
    const over = (): void => {
      if (held) shared.release(conversation);
      held = false;
    };
    try {
      const { chat, pieces } = await begin(conversation, asked, by);
      const { last, headers } = protocol;
      const left = (): void => {
        chat.leave();
        over();
      };
      return streamed(framesOf(pieces, protocol.encoder(body, asked)), { last, headers, beatMs, setTimer, over: left });
    } catch (error) {
      over();
      throw error;
    }
  }
  return (request: Request): Promise<Response> => answer(request).catch(refusal);
}

/** POST a RunAgentInput, answered by its events. Throws ConfigurationError for an option that cannot work. */
export const agUiHandler = (agent: Agent, options: ChatHandlerOptions): ((request: Request) => Promise<Response>) =>
  handlerOf(agent, options, 'agUiHandler', {
    read: readAgUi,
    decision: agUiDecision,
    encoder({ runId, messages }) {
      const own = new Set(listOf(messages).map(({ id }) => id));
      return (piece) => {
        // The page has its messages already, and a name of its own for the run.
        if (piece.kind === 'user' && (piece.message === 'direct' || own.has(piece.messageId))) return [];
        return agUiEvents(typeof runId === 'string' && 'runId' in piece ? { ...piece, runId } : piece);
      };
    },
    last: '',
    headers: {},
  });

/** POST what a chat of the AI SDK sends, answered by a UI message stream. Throws ConfigurationError for an option that cannot work. */
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
