/**
 * The state of a call at an entry, and the words for it. Invariant: the shown arguments are those that ran or wait, not
 * always those of the model. The person or rule that changed or decided something is named.
 */
import type { Json } from '../../machines/vocabulary.ts';
import type { CallFacts, Suspension } from './logFacts.ts';

/** `decided` means that a person has allowed the call, and it runs when the run is resumed. */
export type CallState =
  | 'queued'
  | 'running'
  | 'waiting'
  | 'decided'
  | 'denied'
  | 'done'
  | 'failed'
  | 'cancelled'
  | 'unknown';

const suspensionAt = ({ suspensions }: CallFacts, index: number): Suspension | undefined =>
  suspensions.filter(({ at }) => at <= index).at(-1);

export function callAt(call: CallFacts, index: number): CallState {
  const { result } = call;
  const suspension = suspensionAt(call, index);
  const decision = suspension?.decision && suspension.decision.at <= index ? suspension.decision.decision : undefined;
  const start = call.starts.filter(({ at }) => at <= index).at(-1);
  const isDenied = decision?.action === 'deny' && (!start || start.at < (suspension?.at ?? 0));
  if (result && result.at <= index) {
    if (result.outcome === 'succeeded') return 'done';
    if (result.outcome === 'failed') return isDenied || result.code === 'denied' ? 'denied' : 'failed';
    return result.outcome;
  }
  if (suspension && (!start || start.at < suspension.at)) return isDenied ? 'denied' : decision ? 'decided' : 'waiting';
  return start ? 'running' : 'queued';
}

/** Returns the suspension that waits for a person at an entry. */
export const waitingAt = (call: CallFacts, index: number): Suspension | undefined =>
  callAt(call, index) === 'waiting' ? suspensionAt(call, index) : undefined;

/** Returns the arguments of each start, suspension and edit. The last ones are valid. */
function changesOf({ starts, suspensions }: CallFacts): { at: number; args: Json; by?: string; isEdit?: true }[] {
  const started = starts.flatMap(({ at, args }) => (args === undefined ? [] : [{ at, args }]));
  const suspended = suspensions.flatMap(({ at, args }) => (args === undefined ? [] : [{ at, args }]));
  const edited = suspensions.flatMap(({ decision }) => {
    const { decision: edit, at = 0 } = decision ?? {};
    return edit?.action === 'edit' ? [{ at, args: edit.args, isEdit: true as const, by: edit.by ?? 'a person' }] : [];
  });
  return [...started, ...suspended, ...edited].sort((a, b) => a.at - b.at);
}

/** Returns the arguments that ran, or would run, at an entry. */
export const argsAt = (call: CallFacts, index: number): Json =>
  changesOf(call)
    .filter(({ at }) => at <= index)
    .at(-1)?.args ?? call.args;

const isSame = (one: Json, other: Json): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Returns why the arguments differ from the model's, or undefined if they do not. */
export function editedAt(call: CallFacts, index: number): string | undefined {
  const args = argsAt(call, index);
  if (isSame(args, call.args)) return undefined;
  const edit = changesOf(call)
    .filter(({ at, isEdit }) => isEdit && at <= index)
    .at(-1);
  if (edit?.by === undefined) return 'changed by a plugin';
  return isSame(args, edit.args) ? `edited by ${edit.by}` : `edited by ${edit.by}, then changed by a plugin`;
}

/** Returns whether the arguments of `argsAt` ran, may still run, or never ran. */
export function argsStateAt(call: CallFacts, index: number): 'ran' | 'toRun' | 'notRun' {
  const changed = changesOf(call).filter(({ at }) => at <= index);
  const since = changed.at(-1)?.at ?? call.requestedAt;
  if (call.starts.some(({ at }) => since <= at && at <= index)) return 'ran';
  return call.result && call.result.at <= index ? 'notRun' : 'toRun';
}

const DECIDED = { approve: 'allowed', deny: 'denied', edit: 'edited', answer: 'answered' } as const;

/** Returns the words for a person's decision. */
export function decidedWords({ decision }: Suspension): string | undefined {
  if (!decision) return undefined;
  const { action, by } = decision.decision;
  return by === undefined ? DECIDED[action] : `${DECIDED[action]} by ${by}`;
}

/** Returns the words of a call's row beside its mark. */
export function callNotes(call: CallFacts, index: number): string[] {
  const state = callAt(call, index);
  const suspension = suspensionAt(call, index);
  const words = suspension?.decision && suspension.decision.at <= index ? decidedWords(suspension) : undefined;
  const settled = call.settled.filter(({ at }) => at <= index).at(-1)?.words;
  const { allowed: rule } = call;
  // After a person's decision the log contains an `allowed` entry too, which is not repeated here.
  const allowed = rule && rule.at <= index && !words ? `allowed by ${rule.by}` : undefined;
  const isOutcomeShown = state === 'denied' || state === 'failed' || state === 'cancelled' || state === 'unknown';
  const outcome =
    isOutcomeShown && !(state === 'denied' && words) ? (state === 'unknown' ? 'may have run' : state) : undefined;
  const edited = editedAt(call, index);
  const isEditShown = edited?.startsWith('edited') && words?.startsWith('edited');
  const notes = [outcome, isEditShown ? undefined : words, allowed, edited, settled];
  return notes.filter((note) => note !== undefined);
}

/** Returns the state of a round: done if at least one call succeeded, else the worst state of its calls. */
export function roundState(states: readonly CallState[]): CallState {
  const order: readonly CallState[] = [
    'running',
    'waiting',
    'queued',
    'decided',
    'unknown',
    'done',
    'failed',
    'denied',
  ];
  return order.find((state) => states.includes(state)) ?? 'cancelled';
}
