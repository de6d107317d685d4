/**
 * The requests that the model was sent, each compared with those before it. Rule: messages before the model's last reply
 * stay as they were sent, and none goes away; a result behind it may still be replaced in its place.
 */
import type { Message } from '../../../machines/internal.ts';
import { SUMMARY } from '../../../src/testing/simulation/world/simulatedReply.ts';
import { sameJson } from './sameJson.ts';

const lastWords = (messages: readonly Message[]): number => messages.map(({ role }) => role).lastIndexOf('assistant');

/** A late result, which is quoted in a user message. */
const isQuoted = ({ role, content }: Message): boolean =>
  role === 'user' && content.some((part) => part.type === 'text' && part.text.includes('follows as quoted data'));

/** Index of the first message in which `now` differs from `before`; undefined where it only continues. */
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

/** The summary in place of earlier messages, which is the first message. */
export const summariesIn = ([first]: readonly Message[]): string[] => {
  const text = first?.role === 'user' ? textOf(first) : '';
  return text.startsWith(SUMMARY) || text.startsWith('[Earlier messages were removed') ? [text] : [];
};

/** A request, and who sent it: the conversation, as an object of its process, and its id where that is certain. */
export interface Sent {
  messages: readonly Message[];
  process: number;
  conversation: object | undefined;
  id: string | undefined;
  /** Text of the reply, where the model has given the same text before: it may be new in the next request. */
  repeated?: string;
}

/** A model may say the same in two conversations: those are told apart where they can be. */
const isOfAnother = (before: Sent, { process, conversation, id }: Sent): boolean =>
  before.process === process
    ? before.conversation !== conversation
    : before.id !== undefined && id !== undefined && before.id !== id;

/**
 * After a summary the newest messages follow unchanged, or only messages that no request has had. People say the same again
 * and again, so the model's first words identify the place. The reply to the last request is in no request yet, and a model
 * that answers by a schema may have given the same answer before.
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
  /** The last request of each conversation; requests of one conversation are known by their common messages. */
  readonly #requests: Sent[] = [];
  readonly #ids = new WeakMap<object, string>();
  /** Texts of all replies. */
  readonly #replies = new Set<string>();

  /** What is wrong with a request, compared with those before it. A fork repeats a part and goes on differently. */
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

  /** The model answers this request with this text. */
  answered(sent: Sent, reply: string): void {
    if (this.#replies.has(reply)) sent.repeated = reply;
    this.#replies.add(reply);
  }

  /** What is certain of one request of a conversation is so of all that its process sent. */
  #name(sent: Sent): void {
    const { conversation } = sent;
    if (!conversation) return;
    if (sent.id !== undefined) this.#ids.set(conversation, sent.id);
    sent.id = this.#ids.get(conversation);
    for (const before of this.#requests) if (before.conversation === conversation) before.id = sent.id;
  }
}
