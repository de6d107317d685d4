/**
 * Decisions from the page. Rule: one is sent with its suspension, once; what became of it is said in words where the buttons
 * stood; keys do nothing for a moment after a card has appeared or gone.
 */
import { effect, signal } from '@preact/signals';
import type { Decision, Json } from '../../machines/vocabulary.ts';
import { type CallFacts, type LogFacts, type Suspension, waitingAt } from '../model/facts.ts';
import { ask } from './live.ts';
import { connection, conversations, facts, factsOf, isPast, last, open, said } from './store.ts';

export type Sent = { readonly state: 'sending' } | { readonly state: 'said'; readonly words: string };
export const sent = signal<ReadonlyMap<string, Sent>>(new Map());
export const editing = signal<string | undefined>(undefined);
export const giving = signal<{ readonly key: string; readonly what: 'reason' | 'answer' } | undefined>(undefined);
/** Key of the card that a digit, or the focus, has chosen among several. */
export const chosenCard = signal<string | undefined>(undefined);
export const cancelArmed = signal(0);

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

export const cardKey = (call: CallFacts, suspension: Suspension): string => `${call.callId}/${suspension.number}`;
export const mayControl = (): boolean =>
  connection.value.state === 'open' && connection.value.control && open.value?.source === 'live' && !isPast.value;

export interface Card {
  readonly call: CallFacts;
  readonly suspension: Suspension;
}

/** The call itself waits for nobody: calls of its sub-agents do. */
export const waitsWithin = ({ suspension }: Card): boolean => suspension.reason === 'sub-agent';

/** Calls of sub-agents that wait below a call; they are decided through the conversation that began it. */
export function cardsBelow({ call }: Card, conversation = open.value?.id): Card[] {
  return [...conversations.value.values()]
    .filter(({ parent }) => parent?.conversation === conversation && parent?.callId === call.callId)
    .flatMap(({ id, entries }) => cardsOf(factsOf(entries), entries.length - 1, id));
}

function cardsOf({ calls }: LogFacts, index: number, conversation: string | undefined): Card[] {
  return [...calls.values()].flatMap((call) => {
    const suspension = waitingAt(call, index);
    if (!suspension) return [];
    const card = { call, suspension };
    return waitsWithin(card) ? cardsBelow(card, conversation) : [card];
  });
}

/** What waits for a person now, in the order of the calls. */
export const cards = (): Card[] => cardsOf(facts.value, last.value, open.value?.id);

const firstSeen = new Map<string, number>();
const SETTLE_MS = 400;
/** A key may have been meant for what stood there before. */
export function isSettled(key: string, at: number): boolean {
  const seen = firstSeen.get(key);
  return seen !== undefined && at - seen >= SETTLE_MS;
}
export const seeCard = (key: string, at: number): void => {
  if (!firstSeen.has(key)) firstSeen.set(key, at);
};
let waiting: ReadonlySet<string> = new Set();
effect(() => {
  const left = new Set(cards().map(({ call, suspension }) => cardKey(call, suspension)));
  // A second press was meant for the card that has gone, not for what comes to its place.
  if ([...waiting].some((key) => !left.has(key)))
    for (const key of left) if (firstSeen.has(key)) firstSeen.set(key, performance.now());
  waiting = left;
});

const put = (key: string, state: Sent): void => {
  sent.value = new Map(sent.value).set(key, state);
};

type Answer =
  | { action: 'approve' }
  | { action: 'deny'; reason?: string }
  | { action: 'edit'; args: Json }
  | { action: 'answer'; payload: Json };

export async function decide({ call, suspension }: Card, answer: Answer): Promise<string | undefined> {
  const key = cardKey(call, suspension);
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl() || sent.value.get(key)?.state === 'sending') return undefined;
  put(key, { state: 'sending' });
  const decision: Decision = { callId: call.callId, suspension: suspension.number, ...answer };
  try {
    const answered = await ask({ type: 'decide', conversation, decision });
    const receipt = (answered as { receipt?: string }).receipt ?? 'unknown';
    const words = receipt === 'applied' ? (DONE[answer.action] ?? 'applied') : (RECEIPTS[receipt] ?? receipt);
    put(key, { state: 'said', words });
    editing.value = undefined;
    giving.value = undefined;
    said.value = `${call.name}: ${words}`;
    await resumeIfDecided(conversation, call.callId);
    return undefined;
  } catch (error) {
    const next = new Map(sent.value);
    next.delete(key);
    sent.value = next;
    const words = error instanceof Error ? error.message : String(error);
    said.value = words;
    return words;
  }
}

/** When nothing is left undecided and the conversation waits, the page resumes it. */
async function resumeIfDecided(conversation: string, decided: string): Promise<void> {
  const left = cards().filter(({ call }) => call.callId !== decided);
  if (left.length > 0 || conversations.value.get(conversation)?.status !== 'waiting') return;
  await ask({ type: 'resume', conversation });
}

/** Settles a call of which nobody knows whether it ran. */
export async function settle(
  call: CallFacts,
  how: { ran: Json } | { didNotRun: true } | { retry: true },
): Promise<void> {
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl()) return;
  try {
    await ask({ type: 'settle', conversation, callId: call.callId, how });
    said.value = `${call.name} settled`;
  } catch (error) {
    said.value = String(error instanceof Error ? error.message : error);
  }
}

const ARMED_MS = 2000;
/** The first press says what the second will do. */
export function pressCancel(at: number): void {
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl()) return;
  if (at - cancelArmed.value > ARMED_MS) {
    cancelArmed.value = at;
    said.value = 'X again cancels this run';
    return;
  }
  cancelArmed.value = 0;
  ask({ type: 'cancel', conversation }).then(
    () => {
      said.value = 'cancelled';
    },
    (error: Error) => {
      said.value = error.message;
    },
  );
}

/** An event of a chart that is about to be sent: asked for once, and confirmed. */
export const sending = signal<{ readonly key: string; readonly refused: string } | undefined>(undefined);

/** What a conversation takes from outside by itself; all else of it comes from its log. */
const ACTS: Readonly<Record<string, 'resume' | 'cancel'>> = {
  'resume.requested': 'resume',
  'cancel.requested': 'cancel',
};

/** Whether a click may send the event: `actor` of an app that takes events, or the conversation's own chart. */
export function maySend(type: string, chart: string, actor: string | undefined): boolean {
  if (!mayControl()) return false;
  if (open.value?.of === 'runchart') return chart === 'CONVERSATION' && Object.hasOwn(ACTS, type);
  // Machines that came as JSON name what no one sends by words with a space.
  return open.value?.takesEvents === true && actor !== undefined && !/^xstate\.|\*| /.test(type);
}

/** Answers why it was refused. */
export async function sendEvent(type: string, actor: string | undefined, fields: string): Promise<string | undefined> {
  const conversation = open.value?.id;
  if (conversation === undefined || !mayControl()) return 'nothing can be sent here';
  try {
    const act = ACTS[type];
    const given: unknown = fields.trim() === '' ? {} : JSON.parse(fields);
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return 'expected an object of fields';
    if (act && open.value?.of === 'runchart') await ask({ type: act, conversation });
    else
      await ask({
        type: 'event',
        conversation,
        actor: actor ?? '',
        event: { ...(given as { [field: string]: Json }), type },
      });
    said.value = `${type} sent`;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
