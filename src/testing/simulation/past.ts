/**
 * The past as the model was shown it. Rule: what stood before the model's last words stays as it was, and nothing that
 * was shown goes away; only what nobody has answered yet may still be replaced in its place.
 */
import type { Message } from '../../../machines/internal.ts';
import { sameJson } from './watch/sameJson.ts';
import { SUMMARY } from './world/simulatedReply.ts';

const lastWords = (messages: readonly Message[]): number => messages.map(({ role }) => role).lastIndexOf('assistant');

/** A result that is told behind what was said since. */
const isQuoted = ({ role, content }: Message): boolean =>
  role === 'user' && content.some((part) => part.type === 'text' && part.text.includes('follows as quoted data'));

/** Where `now` tells the past otherwise than `before` did; nothing where it only goes on. */
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

/** What stands for earlier messages: it comes first. */
export const summariesIn = ([first]: readonly Message[]): string[] => {
  const text = first?.role === 'user' ? textOf(first) : '';
  return text.startsWith(SUMMARY) || text.startsWith('[Earlier messages were removed') ? [text] : [];
};

/** Behind a summary the newest messages follow as they were; those that no request has shown yet may be all that is left. */
function goesOnFrom(requests: readonly (readonly Message[])[], [_, ...kept]: readonly Message[]): boolean {
  const places = requests.flatMap((before) =>
    before.flatMap((message, index) => (sameJson(message, kept[0]) ? [before.slice(index)] : [])),
  );
  return places.length === 0 || places.some((shown) => rewritten(shown, kept) === undefined);
}

export class Past {
  /** The last request of each conversation; which is whose is seen by what they have in common. */
  readonly #requests: (readonly Message[])[] = [];

  /** What is wrong with a request, held against those before it. A fork tells part of the past, and goes on otherwise. */
  learn(messages: readonly Message[], forks: boolean): string | undefined {
    if (lastWords(messages) < 0) {
      this.#requests.push(messages);
      return undefined;
    }
    let closest = -1;
    for (const [index, before] of this.#requests.entries()) {
      const at = rewritten(before, messages);
      if (at === undefined) {
        this.#requests[index] = messages;
        return undefined;
      }
      closest = Math.max(closest, at);
    }
    const isSummedUp = summariesIn(messages).length > 0 && goesOnFrom(this.#requests, messages);
    if (forks || isSummedUp) this.#requests.push(messages);
    return forks || isSummedUp
      ? undefined
      : `message ${closest} of ${messages.length} is not the one that was shown before`;
  }
}
