/**
 * Decisions from the page. Invariant: a card is one suspension of one call of one conversation, and a decision is
 * sent once with all three. Its receipt replaces the buttons of that card only. Keys act only on visible buttons, and
 * do nothing shortly after a card has appeared or disappeared.
 */
import { effect, signal } from '@preact/signals';
import type { Decision, Json } from '../../machines/vocabulary.ts';
import { waitingAt } from '../model/callStates.ts';
import type { CallFacts, LogFacts, Suspension } from '../model/logFacts.ts';
import {
  announcement,
  connection,
  conversations,
  facts,
  factsOf,
  isPartial,
  isPast,
  last,
  open,
  openId,
} from './pageState.ts';
import { ask } from './serverConnection.ts';

/** Before every time since the page was opened. */
const NEVER = Number.NEGATIVE_INFINITY;

export type Sent = { readonly state: 'sending' } | { readonly state: 'said'; readonly words: string };
export const sent = signal<ReadonlyMap<string, Sent>>(new Map());
export const editing = signal<string | undefined>(undefined);
export const giving = signal<{ readonly key: string; readonly what: 'reason' | 'answer' } | undefined>(undefined);
/** Key of the card that a digit or the focus selected. */
export const chosenCard = signal<string | undefined>(undefined);
/** The time of a first press of X since the page was opened. */
export const cancelArmed = signal(NEVER);

const RECEIPTS: Readonly<Record<string, string>> = {
  applied: 'allowed',
  held: 'held until the call is suspended',
  duplicate: 'said before',
  conflict: 'somebody else decided first',
  stale: 'too old',
  unknown: 'no such call waits',
};
const DONE: Readonly<Record<string, string>> = {
  approve: 'allowed',
  deny: 'denied',
  edit: 'runs with the new arguments',
  answer: 'answered',
};

export const mayControl = (): boolean =>
  connection.value.state === 'open' && connection.value.control && open.value?.source === 'live' && !isPast.value;

export interface Card {
  /** Unique among all conversations, because their models may use the same call ids. */
  readonly key: string;
  readonly call: CallFacts;
  readonly suspension: Suspension;
  /** The page has only a part of the arguments. */
  readonly isPartial: boolean;
}

/** A conversation of the same name that starts again has other calls. */
const logBegan = (conversation: string | undefined): number | undefined =>
  conversations.value.get(conversation ?? '')?.entries[0]?.at;

/** Returns the card of a suspension. The default conversation is the open one. */
export function cardOf(call: CallFacts, suspension: Suspension, conversation = open.value?.id): Card {
  const key = JSON.stringify([conversation, logBegan(conversation), call.callId, suspension.number]);
  const log = conversations.value.get(conversation ?? '')?.entries ?? [];
  return { key, call, suspension, isPartial: isPartial(log[call.requestedAt]) || isPartial(log[suspension.at]) };
}

/** True if the call itself waits for nobody, but calls of its sub-agents do. */
export const waitsWithin = ({ suspension }: Card): boolean => suspension.reason === 'sub-agent';

/** Returns the waiting calls of sub-agents below a call. They are decided through the conversation that started it. */
export function cardsBelow({ call }: Card, conversation = open.value?.id, above: readonly string[] = []): Card[] {
  // A log from a file may name itself as its parent.
  if (conversation === undefined || above.includes(conversation)) return [];
  return [...conversations.value.values()]
    .filter(({ parent }) => parent?.conversation === conversation && parent?.callId === call.callId)
    .flatMap(({ id, entries }) => cardsOf(factsOf(entries), entries.length - 1, id, [...above, conversation]));
}

function cardsOf(
  { calls }: LogFacts,
  index: number,
  conversation: string | undefined,
  above: readonly string[] = [],
): Card[] {
  return [...calls.values()].flatMap((call) => {
    const suspension = waitingAt(call, index);
    if (!suspension) return [];
    const card = cardOf(call, suspension, conversation);
    return waitsWithin(card) ? cardsBelow(card, conversation, above) : [card];
  });
}

/** Returns all cards that wait for a person now, in the order of the calls. */
export const cards = (): Card[] => cardsOf(facts.value, last.value, open.value?.id);

/** The time at which each visible card was drawn. */
const shownSince = new Map<string, number>();
const SETTLE_MS = 400;
/** Call it when a card is drawn. Call the returned function when it is removed. */
export function showCard(key: string, at: number): () => void {
  shownSince.set(key, at);
  return () => void shownSince.delete(key);
}
/** Returns true if keys may act on a card: its buttons are visible, and have been for long enough. */
export function acceptsKeys({ key }: Card, at: number): boolean {
  const since = shownSince.get(key);
  const hasButtons = !sent.value.has(key) && editing.value !== key && giving.value?.key !== key;
  return hasButtons && since !== undefined && at - since >= SETTLE_MS;
}
let waiting: ReadonlySet<string> = new Set();
effect(() => {
  const current = new Set(cards().map(({ key }) => key));
  // A second key press was meant for the removed card, not for the one in its place.
  if ([...waiting].some((key) => !current.has(key)))
    for (const key of current) if (shownSince.has(key)) shownSince.set(key, performance.now());
  waiting = current;
});

const put = (key: string, state: Sent): void => {
  sent.value = new Map(sent.value).set(key, state);
};

const TOO_LARGE = 'the page has only the beginning of these arguments: they are too large to be edited here';

type Answer =
  | { action: 'approve' }
  | { action: 'deny'; reason?: string }
  | { action: 'edit'; args: Json }
  | { action: 'answer'; payload: Json };

export async function decide(card: Card, answer: Answer): Promise<string | undefined> {
  const { key, call, suspension } = card;
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl() || sent.value.has(key)) return undefined;
  if (card.isPartial && answer.action === 'edit') {
    announcement.value = TOO_LARGE;
    return TOO_LARGE;
  }
  put(key, { state: 'sending' });
  const decision: Decision = { callId: call.callId, suspension: suspension.number, ...answer };
  try {
    const response = await ask({ type: 'decide', conversation, decision });
    const receipt = (response as { receipt?: string }).receipt ?? 'unknown';
    const words = receipt === 'applied' ? (DONE[answer.action] ?? 'applied') : (RECEIPTS[receipt] ?? receipt);
    put(key, { state: 'said', words });
    if (editing.value === key) editing.value = undefined;
    if (giving.value?.key === key) giving.value = undefined;
    announcement.value = `${call.name}: ${words}`;
    await resumeIfDecided(conversation, key);
    return undefined;
  } catch (error) {
    const next = new Map(sent.value);
    next.delete(key);
    sent.value = next;
    const words = error instanceof Error ? error.message : String(error);
    announcement.value = words;
    return words;
  }
}

/** Resumes the conversation if it waits and nothing is undecided. */
async function resumeIfDecided(conversation: string, decided: string): Promise<void> {
  const log = conversations.value.get(conversation)?.entries ?? [];
  const undecided = cardsOf(factsOf(log), log.length - 1, conversation).filter(({ key }) => key !== decided);
  if (undecided.length > 0 || conversations.value.get(conversation)?.status !== 'waiting') return;
  await ask({ type: 'resume', conversation });
}

/** Settles a call with an unknown outcome. */
export async function settle(
  call: CallFacts,
  how: { ran: Json } | { didNotRun: true } | { retry: true },
): Promise<void> {
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl()) return;
  try {
    await ask({ type: 'settle', conversation, callId: call.callId, how });
    announcement.value = `${call.name} settled`;
  } catch (error) {
    announcement.value = String(error instanceof Error ? error.message : error);
  }
}

const ARMED_MS = 2000;
/** The first press announces what the second one does. */
export function pressCancel(at: number): void {
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl()) return;
  if (at - cancelArmed.value > ARMED_MS) {
    cancelArmed.value = at;
    announcement.value = 'X again cancels this run';
    return;
  }
  cancelArmed.value = NEVER;
  ask({ type: 'cancel', conversation }).then(
    () => {
      announcement.value = 'cancelled';
    },
    (error: Error) => {
      announcement.value = error.message;
    },
  );
}

/** The event of a chart that is about to be sent. A second click confirms it. */
export const sending = signal<{ readonly key: string; readonly refused: string } | undefined>(undefined);

/** Events that a conversation accepts from the page. All others come from its log. */
const ACTS: Readonly<Record<string, 'resume' | 'cancel'>> = {
  'resume.requested': 'resume',
  'cancel.requested': 'cancel',
};

/**
 * Returns true if a click may send the event: to an `actor` of an app that accepts events, or to the conversation's
 * own chart.
 */
export function maySend(type: string, chart: string, actor: string | undefined): boolean {
  if (!mayControl()) return false;
  if (open.value?.of === 'runchart') return chart === 'CONVERSATION' && Object.hasOwn(ACTS, type);
  // A wildcard is no event.
  return open.value?.takesEvents === true && actor !== undefined && !/^xstate\.|\*/.test(type);
}

// A first press or click applies only to the conversation that was open then.
effect(() => {
  void openId.value;
  sending.value = undefined;
  cancelArmed.value = NEVER;
});

/** Returns the reason of a refusal, or undefined. */
export async function sendEvent(type: string, actor: string | undefined, fields: string): Promise<string | undefined> {
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl()) return 'nothing can be sent here';
  try {
    const act = ACTS[type];
    const parsedFields: unknown = fields.trim() === '' ? {} : JSON.parse(fields);
    if (typeof parsedFields !== 'object' || parsedFields === null || Array.isArray(parsedFields))
      return 'expected an object of fields';
    if (act && open.value?.of === 'runchart') await ask({ type: act, conversation });
    else
      await ask({
        type: 'event',
        conversation,
        actor: actor ?? '',
        event: { ...(parsedFields as { [field: string]: Json }), type },
      });
    announcement.value = `${type} sent`;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
