/**
 * The outcome of an act of the host. CONVERSATION asks in its guards, and `send()` asks before it accepts a message. Invariant: one
 * pure function answers both. The answer depends on the state of the conversation, its policies and the acts before it.
 */
import type { OpenCalls, SuspendedCall } from '../calls.ts';
import type { ChartPolicies } from '../policies.ts';
import type { ActOutcome } from '../ports.ts';
import { matches } from '../tools/openCalls.ts';
import type { ConversationStatus, DecisionReceipt } from '../vocabulary.ts';

/** The facts by which acts are judged. */
export interface Standing {
  readonly status: ConversationStatus;
  /** The calls that wait for a decision. */
  readonly undecided: readonly SuspendedCall[];
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
  | { type: 'rewind.requested' }
  | { type: 'cancel.requested' }
  | { type: 'close.requested' };
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
      return undecided.length > 0 ? 'queued' : 'resumed';
    default:
      return 'started';
  }
}

/** The outcome of the act in this standing. */
export function judgeAct(standing: Standing, act: Act): Outcome {
  switch (act.type) {
    case 'message.sent':
      return judgeMessage(standing, act);
    case 'cancel.requested':
      if (standing.status === 'cancelling') return 'joined';
      return isFree(standing) ? 'nothing' : 'cancelled';
    case 'close.requested':
      if (standing.status === 'cancelling') return 'joined';
      return standing.status === 'active' ? 'cancelled' : 'nothing';
    case 'rewind.requested':
      return isFree(standing) || standing.status === 'waiting' ? 'rewound' : 'nothing';
    default:
      if (standing.status === 'active') return 'joined';
      if (standing.status === 'waiting' && act.type === 'promotion.requested') return 'nothing';
      return standing.status === 'cancelling' ? 'nothing' : 'continued';
  }
}

/** The standing for later acts, before the chart has taken this one. */
export function standingAfter(standing: Standing, outcome: Outcome): Standing {
  const { queued } = standing;
  switch (outcome) {
    case 'started':
    case 'superseding':
    case 'continued':
      return { ...standing, status: 'active', undecided: [] };
    case 'resumed':
      return { ...standing, resuming: true, queued: queued + 1 };
    case 'steered':
    case 'queued':
      return { ...standing, queued: queued + 1 };
    case 'cancelled':
      return { ...standing, status: 'cancelling' };
    case 'rewound':
      // The waiting cycle is cancelled.
      return standing.status === 'waiting' ? { ...standing, status: 'cancelling' } : standing;
    default:
      return standing;
  }
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

/** The calls that wait without a decision. */
const undecidedOf = ({ suspended, decisions }: OpenCalls): readonly SuspendedCall[] =>
  suspended.filter((waiting) => !decisions.some((held) => matches(held, waiting)));

/** The parts of a CONVERSATION snapshot from which `standingOf` reads. */
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
  undecided: undecidedOf(open),
  queued: queue.length,
  policies: settings.policies,
});
