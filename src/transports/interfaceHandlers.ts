/**
 * Handlers that a page of AG-UI or of the AI SDK talks to: one request, one run, streamed. Rule: of the messages that a page holds only
 * its last one counts, since the conversation has a history of its own; a page that goes away ends nothing, a decision
 * names the suspension that it was shown, and answers to what waits no more begin nothing.
 */
import type { Decision, LogEntry } from '../../machines/internal.ts';
import type { Agent } from '../agent.ts';
import type { ContentPart } from '../content/content.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { Run } from '../conversation/run.ts';
import { ConfigurationError } from '../errors.ts';
import { callback, checkOptionsOf, hasMethods, object, whole } from '../validation.ts';
import { decideCall, type Fields, malformed, textOf } from './acts.ts';
import { agUiEvents, interruptId } from './agUi.ts';
import { type Authorize, authorizedBy, jsonBody, refusal, wrongMethod } from './httpRequests.ts';
import { type Sessions, sessions } from './sessions.ts';
import { type Piece, StreamFold } from './streamFold.ts';
import { uiMessageChunks } from './uiMessages.ts';

export interface InterfaceHandlerOptions {
  authorize: Authorize;
  /** Of one request: 8 MiB. */
  bodyBytesMax?: number;
  /** Shared with other transports of the same agent; its own where it is not given. */
  sessions?: Sessions;
}

const optionsValidator = object({
  authorize: callback,
  bodyBytesMax: whole(1),
  sessions: { expected: 'what sessions() answers', test: (value) => hasMethods(value, 'acquire', 'release') },
});

/** What a page asks for: a message, or answers to what waits. */
interface Asked {
  conversation: string;
  content?: ContentPart[];
  /** By what was waited for. */
  answers: ReadonlyMap<string, unknown>;
}

interface Protocol {
  read(body: Fields): Asked;
  /** The action of an answer. Throws RunchartError for what is none. */
  decision(answer: unknown): Record<string, unknown>;
  frames(piece: Piece, body: Fields): readonly object[];
  /** Behind the last frame. */
  last: string;
  headers: Record<string, string>;
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isFields) : []);
const lastOf = (fields: Fields): Fields => listOf(fields.messages).at(-1) ?? {};
const isText = (value: unknown): value is string => typeof value === 'string';

function requiredText(fields: Fields, key: string): string {
  const text = textOf(fields, key);
  if (text === undefined) throw malformed(`${key}, the id of a conversation`);
  return text;
}

/** Each of the suspensions that wait and were answered, decided; an answer to anything else counts for nothing. */
async function decideAll(conversation: Conversation, asked: Asked, protocol: Protocol, by?: string): Promise<void> {
  for (const call of conversation.pending) {
    const { callId, suspension } = call;
    const answer = asked.answers.get(interruptId(call));
    if (answer === undefined) continue;
    const decision = { callId, suspension, ...protocol.decision(answer) } as unknown as Decision;
    await decideCall(conversation, decision, by);
  }
}

type Stop = Extract<LogEntry, { type: 'run-stop' }>;

/** How the last cycle ended, where nothing waits in it or may go on by an answer; a crash is no end that anybody chose. */
function endBefore(conversation: Conversation): Stop | undefined {
  const { status } = conversation;
  if (status !== 'idle' && status !== 'error') return undefined;
  const stops = conversation.log().filter((entry): entry is Stop => entry.type === 'run-stop');
  const stop = stops.at(-1);
  return stop?.cause === 'crash' ? undefined : stop;
}

/** What a page is told that asked for nothing new. */
function* endOf(stop: Stop, conversationId: string, frames: (piece: Piece) => readonly object[]): Generator<object> {
  const { reason, cause } = stop;
  const of = { runId: stop.runId ?? '', conversationId };
  yield* frames({ kind: 'run-begins', continues: true, ...of });
  yield* frames({ kind: 'run-ends', reason, cause, ...of });
}

/** The frames of a run; one that left nothing in the log begins and ends all the same. */
async function* framesOf(
  run: Run,
  conversationId: string,
  frames: (piece: Piece) => readonly object[],
): AsyncGenerator<object> {
  const fold = new StreamFold();
  let began = false;
  let ended = false;
  for await (const item of run) {
    for (const piece of fold.take(item)) {
      began ||= piece.kind === 'run-begins';
      ended = piece.kind === 'run-ends' || piece.kind === 'run-waits';
      yield* frames(piece);
    }
  }
  if (ended) return;
  const of = { runId: run.id, conversationId };
  const { reason, cause } = await run.result;
  if (!began) yield* frames({ kind: 'run-begins', continues: true, ...of });
  yield* frames({ kind: 'run-ends', reason: reason ?? 'error', cause, ...of });
}

const encoder = new TextEncoder();

/** Events as they come; `over` is called once, when they end or nobody reads them any more. */
function streamed(
  events: AsyncGenerator<object> | Generator<object>,
  last: string,
  headers: Record<string, string>,
  over: () => void,
): Response {
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await events.next();
      if (!next.done) return controller.enqueue(encoder.encode(`data: ${JSON.stringify(next.value)}\n\n`));
      if (last !== '') controller.enqueue(encoder.encode(`data: ${last}\n\n`));
      over();
      controller.close();
    },
    cancel() {
      over();
      // The run goes on; only its reader ends.
      void events.return(undefined);
    },
  });
  const usual = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
  return new Response(body, { headers: { ...usual, 'x-content-type-options': 'nosniff', ...headers } });
}

function handlerOf(agent: Agent, options: InterfaceHandlerOptions, name: string, protocol: Protocol) {
  checkOptionsOf(name, options, optionsValidator);
  const { authorize, bodyBytesMax, sessions: shared = sessions(agent) } = options;
  if (authorize === undefined) throw new ConfigurationError(`${name} needs authorize, which says who may ask`);

  async function answer(request: Request): Promise<Response> {
    const by = await authorizedBy(request, authorize);
    if (request.method !== 'POST') throw wrongMethod();
    const body = await jsonBody(request, bodyBytesMax);
    if (!isFields(body)) throw malformed('a JSON object');
    const asked = protocol.read(body);
    // What answers something answers a conversation that exists.
    const conversation = await shared.acquire(asked.conversation, asked.content ? {} : { existing: true });
    let held = true;
    const over = (): void => {
      if (held) shared.release(conversation);
      held = false;
    };
    try {
      const stop = asked.answers.size > 0 ? endBefore(conversation) : undefined;
      await decideAll(conversation, asked, protocol, by);
      const frames = (piece: Piece) => protocol.frames(piece, body);
      const begun = (): Run => (asked.content ? conversation.send(asked.content) : conversation.resume());
      const events = stop ? endOf(stop, conversation.id, frames) : framesOf(begun(), conversation.id, frames);
      return streamed(events, protocol.last, protocol.headers, over);
    } catch (error) {
      over();
      throw error;
    }
  }
  return (request: Request): Promise<Response> => answer(request).catch(refusal);
}

function decided(approved: unknown, reason: unknown): Record<string, unknown> {
  if (approved === true) return { action: 'approve' };
  if (approved === false) return { action: 'deny', ...(isText(reason) && { reason }) };
  throw malformed('approved to be true or false');
}

function contentPart(part: Fields): ContentPart[] {
  const { type, text, source } = part;
  if (type === 'text' && isText(text)) return [{ type: 'text', text }];
  if (type === 'image' && isFields(source) && isText(source.value)) {
    return [{ type: 'image', mediaType: isText(source.mimeType) ? source.mimeType : 'image/png', data: source.value }];
  }
  throw malformed('content of texts and images');
}

/** Of the protocol's input: the thread, its last message, and answers to interrupts. */
function readAgUi(body: Fields): Asked {
  const conversation = requiredText(body, 'threadId');
  const resume = listOf(body.resume);
  if (resume.length > 0)
    return { conversation, answers: new Map(resume.map((entry) => [String(entry.interruptId), entry])) };
  const { role, content } = lastOf(body);
  if (role !== 'user') throw malformed('resume, or a last message of the user');
  const parts: ContentPart[] = isText(content)
    ? [{ type: 'text', text: content }]
    : listOf(content).flatMap(contentPart);
  return { conversation, content: parts, answers: new Map() };
}

/** `payload`: a boolean, `{ approved }`, or a whole decision with its `action`; anything else is an answer. */
function agUiDecision(answer: unknown): Record<string, unknown> {
  const { status, payload } = answer as Fields;
  if (status === 'cancelled') return { action: 'deny' };
  if (status !== 'resolved' || payload === undefined)
    throw malformed('a resolved entry with a payload, or a cancelled one');
  if (typeof payload === 'boolean') return decided(payload, undefined);
  if (!isFields(payload)) return { action: 'answer', payload };
  if ('approved' in payload) return decided(payload.approved, payload.reason);
  const { action, reason, args, payload: inner } = payload;
  if (!isText(action)) return { action: 'answer', payload };
  return {
    action,
    ...(reason !== undefined && { reason }),
    ...(args !== undefined && { args }),
    ...(inner !== undefined && { payload: inner }),
  };
}

/** POST a RunAgentInput, answered by its events. Throws ConfigurationError for an option that cannot work. */
export const agUiHandler = (
  agent: Agent,
  options: InterfaceHandlerOptions,
): ((request: Request) => Promise<Response>) =>
  handlerOf(agent, options, 'agUiHandler', {
    read: readAgUi,
    decision: agUiDecision,
    frames(piece, { runId }) {
      // The page has its message already, and a name of its own for the run.
      if (piece.kind === 'user' && piece.message === 'direct') return [];
      const named = isText(runId) && 'runId' in piece ? { ...piece, runId } : piece;
      return agUiEvents(named);
    },
    last: '',
    headers: {},
  });

function uiPart({ type, text, url, mediaType }: Fields): ContentPart[] {
  if (type === 'text' && isText(text)) return [{ type: 'text', text }];
  if (type === 'file' && isText(url) && isText(mediaType)) return [{ type: 'image', mediaType, data: url }];
  return [];
}

/** Of the chat's request: its id, its last message, or the approvals in it. */
function readUiMessages(body: Fields): Asked {
  const conversation = requiredText(body, 'id');
  if (body.trigger === 'regenerate-message') throw malformed('another trigger: what was said is not said again');
  const { role, parts } = lastOf(body);
  if (role === 'user') return { conversation, content: listOf(parts).flatMap(uiPart), answers: new Map() };
  const approvals = listOf(parts).flatMap(({ state, approval }) =>
    state === 'approval-responded' && isFields(approval) ? [[String(approval.id), approval] as const] : [],
  );
  return { conversation, answers: new Map(approvals) };
}

/** POST what a chat of the AI SDK sends, answered by a UI message stream. Throws ConfigurationError for an option that cannot work. */
export const uiMessageHandler = (
  agent: Agent,
  options: InterfaceHandlerOptions,
): ((request: Request) => Promise<Response>) =>
  handlerOf(agent, options, 'uiMessageHandler', {
    read: readUiMessages,
    decision: (answer) => decided((answer as Fields).approved, (answer as Fields).reason),
    frames: uiMessageChunks,
    last: '[DONE]',
    headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
  });
