/**
 * What an act of the host comes to. CONVERSATION asks in its guards, and `send()` asks before it accepts a message. Invariant: one
 * pure function answers both. The answer depends on the state of the conversation, its policies and the acts before it.
 */
import type { OpenCalls } from '../calls.ts';
import type { ChartPolicies } from '../policies.ts';
import type { ActOutcome } from '../ports.ts';
import { matches } from '../tools/openCalls.ts';
import type { ConversationStatus, DecisionReceipt } from '../vocabulary.ts';

/** What acts are judged by. */
export interface Standing {
  readonly status: ConversationStatus;
  /** A call waits for a decision. */
  readonly undecided: boolean;
  /** A message on its way resumes the waiting cycle. Later messages are queued after it. */
  readonly resuming?: boolean;
  /** The number of messages in the queue. */
  readonly queued: number;
  readonly policies: Pick<ChartPolicies, 'whileActive' | 'whileSuspended' | 'limits'>;
}

type WhileSuspended = ChartPolicies['whileSuspended'];

/** `direct`: a message of `send()`. `whileSuspended` replaces the policy of that name for this message. */
export type Act =
  | { type: 'message.sent'; kind: 'direct' | 'steer' | 'followUp'; whileSuspended?: WhileSuspended }
  | { type: 'resume.requested' }
  | { type: 'promotion.requested' }
  | { type: 'cancel.requested' };
type Message = Extract<Act, { type: 'message.sent' }>;

export type Outcome = Exclude<ActOutcome, 'returned' | DecisionReceipt>;

const isFree = ({ status }: Standing): boolean => status === 'idle' || status === 'error';

/** `kind` was accepted before: a direct message that comes too late to start a run waits as a followUp. */
function judgeMessage({ status, undecided, resuming, policies }: Standing, message: Message): Outcome {
  const { kind, whileSuspended = policies.whileSuspended } = message;
  switch (status) {
    case 'active':
      return kind === 'steer' ? 'steered' : 'queued';
    case 'cancelling':
      return 'queued';
    case 'waiting':
      if (resuming) return 'queued';
      if (kind === 'direct' && whileSuspended === 'denyAndRun') return 'superseding';
      return undecided ? 'queued' : 'resumed';
    default:
      return 'started';
  }
}

/** What the act comes to in this standing. */
export function judgeAct(standing: Standing, act: Act): Outcome {
  switch (act.type) {
    case 'message.sent':
      return judgeMessage(standing, act);
    case 'cancel.requested':
      if (standing.status === 'cancelling') return 'joined';
      return isFree(standing) ? 'nothing' : 'cancelled';
    default:
      if (standing.status === 'active') return 'joined';
      if (standing.status === 'waiting' && act.type === 'promotion.requested') return 'nothing';
      return standing.status === 'cancelling' ? 'nothing' : 'continued';
  }
}

/** What later acts are judged by, before the chart has taken this one. */
export function standingAfter(standing: Standing, outcome: Outcome): Standing {
  const { queued } = standing;
  switch (outcome) {
    case 'started':
    case 'superseding':
    case 'continued':
      return { ...standing, status: 'active', undecided: false };
    case 'resumed':
      return { ...standing, resuming: true, queued: queued + 1 };
    case 'steered':
    case 'queued':
      return { ...standing, queued: queued + 1 };
    case 'cancelled':
      return { ...standing, status: 'cancelling' };
    default:
      return standing;
  }
}

/** The act starts a run that its caller asked for. */
const startsRun = (outcome: Outcome): boolean =>
  outcome === 'started' || outcome === 'superseding' || outcome === 'continued';

/** An act that the chart has not taken. */
export interface PendingAct {
  readonly act: Act;
  /** Its images, or those of an act before it, are being stored. Nothing of it can be in the log. */
  readonly isHeld: boolean;
  /** Its own images are being stored. */
  readonly isStoring: boolean;
}

/** Judges acts in their order, each as if the chart had taken those before it. */
export function judgePending(standing: Standing, acts: readonly Act[]): { standing: Standing; starts: boolean[] } {
  const starts: boolean[] = [];
  for (const act of acts) {
    const outcome = judgeAct(standing, act);
    starts.push(startsRun(outcome));
    standing = standingAfter(standing, outcome);
  }
  return { standing, starts };
}

/**
 * `returned`: the caller receives the act back, and the log does not contain it. `cancelled`: the act starts its run, which the
 * log records as cancelled.
 */
export type Fate = 'kept' | 'returned' | 'cancelled';

/**
 * Decides the fate of each act that the chart has not taken, when the host cancels, closes, or withdraws one act by its index.
 * A cancel ends the run that would start first, and returns messages whose images are being stored, except followUps. After a
 * close no run starts.
 */
export function fatesOf(standing: Standing, pending: readonly PendingAct[], by: 'cancel' | 'close' | number): Fate[] {
  const { starts } = judgePending(
    standing,
    pending.map(({ act }) => act),
  );
  const first = by === 'cancel' ? starts.indexOf(true) : by;
  return pending.map(({ act, isHeld, isStoring }, index): Fate => {
    const isFollowUp = act.type === 'message.sent' && act.kind === 'followUp';
    if (isStoring && (by === 'close' || (by === 'cancel' && !isFollowUp))) return 'returned';
    if (by === 'close') return starts[index] ? 'returned' : 'kept';
    if (index !== first) return 'kept';
    // A promotion starts nothing here: its message stays in the queue.
    return starts[index] && !isHeld && act.type !== 'promotion.requested' ? 'cancelled' : 'returned';
  });
}

/** Why a message is not accepted. */
export type Refusal = 'busy' | 'cancelling' | 'suspended' | 'full';

/** The kind that the policies give to a message of `send()`, or why they refuse it. */
function kindOfSend(
  { status, policies }: Standing,
  whileSuspended = policies.whileSuspended,
): Message['kind'] | Refusal {
  const { whileActive } = policies;
  switch (status) {
    case 'active':
      return whileActive === 'reject' ? 'busy' : whileActive;
    case 'cancelling':
      return whileActive === 'reject' ? 'cancelling' : whileActive;
    case 'waiting':
      if (whileSuspended === 'reject') return 'suspended';
      return whileSuspended === 'followUp' ? 'followUp' : 'direct';
    default:
      return 'direct';
  }
}

/** The kind of a message that is accepted, or why it is not. Only a message that starts a run needs no place in the queue. */
export function acceptMessage(
  standing: Standing,
  {
    kind: asked,
    whileSuspended,
  }: { kind?: 'steer' | 'followUp' | undefined; whileSuspended?: WhileSuspended | undefined },
): { kind: Message['kind'] } | { refused: Refusal } {
  const kind = asked ?? kindOfSend(standing, whileSuspended);
  if (kind !== 'direct' && kind !== 'steer' && kind !== 'followUp') return { refused: kind };
  const outcome = judgeMessage(standing, { type: 'message.sent', kind, ...(whileSuspended && { whileSuspended }) });
  const waits = outcome !== 'started' && outcome !== 'superseding';
  return waits && standing.queued >= standing.policies.limits.queue ? { refused: 'full' } : { kind };
}

/** A call waits without a decision. */
export const isUndecided = ({ suspended, decisions }: Pick<OpenCalls, 'suspended' | 'decisions'>): boolean =>
  suspended.some((waiting) => !decisions.some((held) => matches(held, waiting)));

/** The parts of a snapshot of CONVERSATION that a standing is read from. */
interface ConversationSnapshot {
  readonly tags: ReadonlySet<string>;
  readonly context: {
    readonly open: OpenCalls;
    readonly queue: readonly unknown[];
    readonly settings: { readonly policies: Standing['policies'] };
  };
}

const STATUSES: readonly ConversationStatus[] = ['idle', 'error', 'active', 'waiting', 'cancelling'];

/** Each state of CONVERSATION has one status among its tags. */
export const standingOf = ({ tags, context: { open, queue, settings } }: ConversationSnapshot): Standing => ({
  status: STATUSES.find((status) => tags.has(status)) ?? 'idle',
  undecided: isUndecided(open),
  queued: queue.length,
  policies: settings.policies,
});
