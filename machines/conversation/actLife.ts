/**
 * The life of an act of the host, from its call to its end. `nextActs`, a pure function, moves acts along `ACT_LIFE`; the command
 * queue carries out the tasks that it returns. Invariant: acts are sent in the order of their calls, and each has one end. Cancels,
 * closes and returns of messages overtake the others.
 */
import type { SuspendedCall } from '../calls.ts';
import type { Decision, QueuedMessage } from '../vocabulary.ts';
import { runOf } from './context.ts';
import { type Act, judgeAct, type Outcome, type Standing, standingAfter } from './judgeAct.ts';

/**
 * `storing`: the images of the act are being stored. `held`: an act before it has such images. `sent`: the chart has not taken it yet.
 * `withdrawn`: its caller gave it up after it was sent, so the chart starts its run cancelled. `taken`: the chart has taken it, and
 * its entries are being stored.
 */
export type ActStage = 'storing' | 'held' | 'sent' | 'withdrawn' | 'taken';
/** `refused`: its caller receives an error. */
export type ActEnd = 'answered' | 'refused';

type ActStep =
  | 'hasImages'
  | 'queues'
  | 'overtakes'
  | 'imagesStored'
  | 'imagesLost'
  | 'send'
  | 'sendWithdrawn'
  | 'withdraw'
  | 'return'
  | 'deliver'
  | 'durable'
  | 'lost'
  | 'close';

/** Each stage with the steps that leave it. `called` lasts no time. */
export const ACT_LIFE: {
  readonly [stage in 'called' | ActStage]: { readonly [step in ActStep]?: ActStage | ActEnd };
} = {
  called: { hasImages: 'storing', queues: 'held', overtakes: 'sent' },
  storing: { imagesStored: 'held', imagesLost: 'refused', return: 'answered', close: 'refused' },
  // It is sent at once if no act before it stores images.
  held: { send: 'sent', sendWithdrawn: 'withdrawn', return: 'answered', close: 'refused' },
  sent: { withdraw: 'withdrawn', return: 'answered', deliver: 'taken', close: 'refused' },
  withdrawn: { return: 'answered', deliver: 'taken', close: 'refused' },
  taken: { durable: 'answered', lost: 'refused', close: 'refused' },
};

/** An act without an end. */
export interface PendingAct {
  readonly id: string;
  readonly act: PendingOf<Act> | PendingOf<OtherAct>;
  /** The run that the act starts, if it starts one. */
  readonly runId?: string | undefined;
  readonly stage: ActStage;
}
/** An act that needs no judgement, such as a decision. */
type OtherAct = { readonly type: string };
/** `withdrawn`: its caller gave it up before it was sent. */
type PendingOf<Called> = Called & { readonly withdrawn?: boolean };

export type ActEvent =
  | { type: 'called'; id: string; act: PendingAct['act']; runId?: string | undefined; hasImages: boolean }
  | { type: 'imagesStored' | 'imagesLost' | 'deliver' | 'durable' | 'lost'; id: string }
  /** The first act that may go is sent. */
  | { type: 'send' }
  /** A cancel, a close, or the caller of one run gives up acts that the chart has not taken. */
  | { type: 'giveUp'; by: GivenUpBy; standing: Standing }
  /** The chart broke, and answers nothing that it has taken. */
  | { type: 'break' }
  | { type: 'close' };
export type GivenUpBy = 'cancel' | 'close' | { readonly runId: string };

/**
 * A task for the command queue. `withdraw` marks an act that is on its way. `return` answers the act with `returned`, and the chart does
 * not receive it.
 */
export interface ActTask {
  readonly do: 'send' | 'withdraw' | 'return' | 'answer' | 'refuse';
  readonly id: string;
}

export interface PendingActs {
  readonly acts: readonly PendingAct[];
  readonly tasks: readonly ActTask[];
}

const TASKS: { readonly [step in ActStep]?: ActTask['do'] } = {
  overtakes: 'send',
  send: 'send',
  sendWithdrawn: 'send',
  withdraw: 'withdraw',
  return: 'return',
  durable: 'answer',
  imagesLost: 'refuse',
  lost: 'refuse',
  close: 'refuse',
};

/** Moves each act by its step. A step that does not leave the stage of its act is ignored. */
function moved(
  acts: readonly PendingAct[],
  stepOf: (act: PendingAct, index: number) => ActStep | undefined,
): PendingActs {
  const tasks: ActTask[] = [];
  const pending = acts.flatMap((act, index): readonly PendingAct[] => {
    const step = stepOf(act, index);
    const stage = step && ACT_LIFE[act.stage][step];
    if (!stage) return [act];
    const task = TASKS[step];
    if (task) tasks.push({ do: task, id: act.id });
    return stage === 'answered' || stage === 'refused' ? [] : [{ ...act, stage }];
  });
  return { acts: pending, tasks };
}

const OVERTAKING: ReadonlySet<string> = new Set(['cancel.requested', 'close.requested', 'message.returned']);
/** The act is delivered before acts that were sent before it. */
export const overtakes = ({ type }: { type: string }): boolean => OVERTAKING.has(type);

function called(acts: readonly PendingAct[], { type: _, hasImages, ...call }: ActEvent & { type: 'called' }) {
  const step = hasImages ? 'hasImages' : overtakes(call.act) ? 'overtakes' : 'queues';
  const stage = ACT_LIFE.called[step] as ActStage;
  const task = TASKS[step];
  return { acts: [...acts, { ...call, stage }], tasks: task ? [{ do: task, id: call.id }] : [] };
}

/** Acts keep their order, so an act whose images are being stored holds up those after it. */
function sendFirst(acts: readonly PendingAct[]): PendingActs {
  const first = acts.findIndex(({ stage }) => stage === 'storing' || stage === 'held');
  return moved(acts, ({ act }, index) => {
    if (index !== first) return undefined;
    return act.withdrawn ? 'sendWithdrawn' : 'send';
  });
}

export function nextActs(acts: readonly PendingAct[], event: ActEvent): PendingActs {
  switch (event.type) {
    case 'called':
      return called(acts, event);
    case 'send':
      return sendFirst(acts);
    case 'giveUp': {
      const fates = fatesOf(event.standing, acts, event.by);
      return moved(acts, (_, index) => fates[index]);
    }
    case 'break':
      return moved(acts, () => 'lost');
    case 'close':
      return moved(acts, () => 'close');
    default:
      return moved(acts, ({ id }) => (id === event.id ? event.type : undefined));
  }
}

const JUDGED: ReadonlySet<string> = new Set<Act['type']>([
  'message.sent',
  'resume.requested',
  'promotion.requested',
  'rewind.requested',
  'cancel.requested',
  'close.requested',
]);
type JudgedAct = PendingAct & { readonly act: Act };
const isWaiting = ({ stage }: PendingAct): boolean => stage !== 'taken';
const isJudged = (pending: PendingAct): pending is JudgedAct => isWaiting(pending) && JUDGED.has(pending.act.type);

/** A decision that the chart has not taken. */
type ProposedDecision = { type: 'decision.proposed'; decision: Pick<Decision, 'callId' | 'suspension'> };
const isDecision = (act: PendingAct['act']): act is ProposedDecision => act.type === 'decision.proposed';
const isFor = ({ callId, suspension }: ProposedDecision['decision'], waiting: SuspendedCall): boolean =>
  callId === waiting.call.callId && (suspension ?? waiting.suspension) === waiting.suspension;

const startsRun = (outcome: Outcome): boolean =>
  outcome === 'started' || outcome === 'superseding' || outcome === 'continued';

/** Judges the acts that the chart has not taken, in their order, each as if the chart had taken those before it. */
function judgePending(standing: Standing, acts: readonly PendingAct[]) {
  /** Acts that start a run that their callers asked for. */
  const starting: JudgedAct[] = [];
  let after = standing;
  for (const pending of acts.filter(isWaiting)) {
    const { act } = pending;
    if (isDecision(act)) {
      const undecided = after.undecided.filter((waiting) => !isFor(act.decision, waiting));
      after = { ...after, undecided };
    } else if (isJudged(pending)) {
      const outcome = judgeAct(after, pending.act);
      if (startsRun(outcome)) starting.push(pending);
      after = standingAfter(after, outcome);
    }
  }
  return { standing: after, starting };
}

/** The standing by which the next act is judged. */
export const standingAfterActs = (standing: Standing, acts: readonly PendingAct[]): Standing =>
  judgePending(standing, acts).standing;

/** The run that starts next, if an act on its way starts one. */
export const nextRunOf = (standing: Standing, acts: readonly PendingAct[]): string | undefined =>
  judgePending(standing, acts).starting[0]?.runId;

/** A cancel, or a close that cancels a run, has not been delivered. */
export const hasCancel = ({ status }: Standing, acts: readonly PendingAct[]): boolean =>
  acts.some((pending) => {
    const { type } = pending.act;
    return isWaiting(pending) && (type === 'cancel.requested' || (type === 'close.requested' && status === 'active'));
  });

/** A cancel, or an act that was withdrawn, has not been delivered. */
export const isCancelling = (standing: Standing, acts: readonly PendingAct[]): boolean =>
  hasCancel(standing, acts) || acts.some(({ stage }) => stage === 'withdrawn');

/** The step of an act that is given up. */
type Fate = 'withdraw' | 'return' | undefined;

/**
 * Decides the fate of each act when the host cancels, closes, or gives up the act of one run. A cancel ends the run that would start
 * first, and returns messages whose images are being stored, except followUps. After a close no run starts.
 */
export function fatesOf(standing: Standing, acts: readonly PendingAct[], by: GivenUpBy): Fate[] {
  const { starting } = judgePending(standing, acts);
  const first = typeof by === 'string' ? starting[0] : acts.filter(isJudged).find(({ runId }) => runId === by.runId);
  return acts.map((pending): Fate => {
    if (!isJudged(pending)) return undefined;
    const { act, stage } = pending;
    const starts = starting.includes(pending);
    const isFollowUp = act.type === 'message.sent' && act.kind === 'followUp';
    if (stage === 'storing' && (by === 'close' || (by === 'cancel' && !isFollowUp))) return 'return';
    if (by === 'close') return starts ? 'return' : undefined;
    if (pending !== first) return undefined;
    // A promotion starts nothing here: its message stays in the queue. Nothing of an act that was not sent can be in the log.
    const wasSent = stage === 'sent' || stage === 'withdrawn';
    return starts && wasSent && act.type !== 'promotion.requested' ? 'withdraw' : 'return';
  });
}

/** The runs and messages that CONVERSATION contains. */
interface RunsOfChart {
  /** The active run, or the run that starts after the stop before it. */
  readonly runId: string | undefined;
  readonly queue: readonly QueuedMessage[];
}

/**
 * `onItsWay`: the chart has not taken the act that starts the run. `queued`: its message waits, and may be about to start its run. `none`: the run has ended, or
 * never began.
 */
export type RunPlace = 'onItsWay' | 'queued' | 'active' | 'none';

/** The place of a run decides how it is cancelled. */
export function placeOfRun(chart: RunsOfChart, acts: readonly PendingAct[], wanted: string): RunPlace {
  const starter = acts.find((pending) => isWaiting(pending) && pending.runId === wanted);
  if (starter && starter.act.type !== 'promotion.requested') return 'onItsWay';
  if (chart.queue.some(({ messageId }) => runOf(messageId) === wanted)) return 'queued';
  return chart.runId === wanted ? 'active' : 'none';
}
