/**
 * Requests that are repeated because their answer was lost. Rule: while a conversation is open, a request under the same key acts
 * once, and each repetition has the first answer. A refusal for the moment is not kept, so the repetition acts.
 */
import { RunchartError } from '../../errors.ts';
import type { Conversation } from '../conversation.ts';

/** The last answers that are kept for a conversation. */
const KEPT = 256;

const answersOf = new WeakMap<Conversation, Map<string, Promise<unknown>>>();

const isForNow = (error: unknown): boolean =>
  RunchartError.isRunchartError(error) && (error.code === 'limit' || error.code === 'unavailable');

/** `key`: the id of the request, with the facts that distinguish it from other requests. Undefined for a request that is never repeated. */
export function once<Answer>(
  conversation: Conversation,
  key: string | undefined,
  act: () => Promise<Answer>,
): Promise<Answer> {
  if (key === undefined) return act();
  const answers = answersOf.get(conversation) ?? new Map<string, Promise<unknown>>();
  answersOf.set(conversation, answers);
  const existing = answers.get(key);
  if (existing) return existing as Promise<Answer>;
  const answer = act();
  answers.set(key, answer);
  answer.catch((error: unknown) => {
    if (isForNow(error) && answers.get(key) === answer) answers.delete(key);
  });
  for (const [oldest] of answers) {
    if (answers.size <= KEPT) break;
    answers.delete(oldest);
  }
  return answer;
}
