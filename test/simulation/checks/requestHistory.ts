/**
 * The requests of the model, each compared with the earlier ones. Invariant: messages before the model's last reply are
 * unchanged, and none is removed. A result after it may still be replaced.
 */
import type { Message } from '../../../machines/internal.ts';
import { SUMMARY } from '../../../src/testing/simulation/world/simulatedReply.ts';
import { sameJson } from './sameJson.ts';

const lastWords = (messages: readonly Message[]): number => messages.map(({ role }) => role).lastIndexOf('assistant');

/** A late result, which is quoted in a user message. */
const isQuoted = ({ role, content }: Message): boolean =>
  role === 'user' && content.some((part) => part.type === 'text' && part.text.includes('follows as quoted data'));

/** Returns the index of the first message in which `now` differs from `before`. Undefined if `now` only continues. */
function rewritten(before: readonly Message[], now: readonly Message[]): number | undefined {
  const answered = lastWords(before);
  for (const [index, message] of before.entries()) {
    const later = now[index];
    const mayChange = index > answered && (message.role === 'tool' || isQuoted(message));
    if (mayChange ? message.role !== later?.role : !sameJson(message, later)) return index;
  }
  return undefined;
}

const textOf = ({ content }: Message): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** Returns the summary of earlier messages, which is the first message. */
export const summariesIn = ([first]: readonly Message[]): string[] => {
  const text = first?.role === 'user' ? textOf(first) : '';
  return text.startsWith(SUMMARY) || text.startsWith('[Earlier messages were removed') ? [text] : [];
};

/** A request and its sender: the conversation object of its process, and its id if that is certain. */
export interface Sent {
  messages: readonly Message[];
  process: number;
  conversation: object | undefined;
  id: string | undefined;
  /** The text of a reply that repeats an earlier one. It may be new in the next request. */
  repeated?: string;
}

/** A model may give the same reply in two conversations, which are distinguished if possible. */
const isOfAnother = (before: Sent, { process, conversation, id }: Sent): boolean =>
  before.process === process
    ? before.conversation !== conversation
    : before.id !== undefined && id !== undefined && before.id !== id;

/**
 * After a summary the newest messages follow unchanged, or only messages that no earlier request contained. Users
 * repeat the same message, so the model's first words identify the place. No request contains the last reply yet. A
 * model with a schema may have returned the same answer before.
 */
function goesOnFrom(requests: readonly Sent[], [_, ...kept]: readonly Message[]): boolean {
  const first = Math.max(
    0,
    kept.findIndex(({ role }) => role === 'assistant'),
  );
  const words = kept[first];
  if (
    words &&
    requests.some(({ messages, repeated }) => isReply(words, repeated) && endsIn(messages, kept.slice(0, first)))
  )
    return true;
  const places = requests.flatMap((before) =>
    before.messages.flatMap((message, index) => {
      if (!sameJson(message, kept[first])) return [];
      const ahead = Math.min(first, index);
      return [{ shown: before.messages.slice(index - ahead), now: kept.slice(first - ahead) }];
    }),
  );
  return places.length === 0 || places.some(({ shown, now }) => rewritten(shown, now) === undefined);
}

const isReply = (message: Message, reply: string | undefined): boolean =>
  message.role === 'assistant' && message.toolCalls.length === 0 && textOf(message) === reply;

const endsIn = (messages: readonly Message[], last: readonly Message[]): boolean =>
  last.length === 0 || (last.length <= messages.length && sameJson(messages.slice(-last.length), last));

export class RequestHistory {
  /** The last request of each conversation. Common messages identify the requests of one conversation. */
  readonly #requests: Sent[] = [];
  readonly #ids = new WeakMap<object, string>();
  /** The texts of all replies. */
  readonly #replies = new Set<string>();

  /** Returns the fault of a request, compared with earlier ones. A fork repeats a part and continues differently. */
  learn(sent: Sent, forks: boolean): string | undefined {
    this.#name(sent);
    const { messages } = sent;
    if (lastWords(messages) < 0) {
      this.#requests.push(sent);
      return undefined;
    }
    let closest = -1;
    for (const [index, before] of this.#requests.entries()) {
      const at = rewritten(before.messages, messages);
      if (at === undefined) {
        this.#requests[index] = sent;
        return undefined;
      }
      closest = Math.max(closest, at);
    }
    const own = this.#requests.filter((before) => !isOfAnother(before, sent));
    const isSummedUp = summariesIn(messages).length > 0 && goesOnFrom(own, messages);
    if (forks || isSummedUp) this.#requests.push(sent);
    return forks || isSummedUp
      ? undefined
      : `message ${closest} of ${messages.length} is not the one that was shown before`;
  }

  /** Records the text of the model's reply to this request. */
  answered(sent: Sent, reply: string): void {
    if (this.#replies.has(reply)) sent.repeated = reply;
    this.#replies.add(reply);
  }

  /** A certain id of one request applies to all requests of that conversation and process. */
  #name(sent: Sent): void {
    const { conversation } = sent;
    if (!conversation) return;
    if (sent.id !== undefined) this.#ids.set(conversation, sent.id);
    sent.id = this.#ids.get(conversation);
    for (const before of this.#requests) if (before.conversation === conversation) before.id = sent.id;
  }
}
