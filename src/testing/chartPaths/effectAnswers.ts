/**
 * Matches answers to the requests of a chart. Invariant: an answer needs an open request of a fitting kind. So a path
 * never contains an event that no host could deliver.
 */
import {
  type ChartEffect,
  type Completion,
  type EffectRequest,
  type EffectValue,
  type NewEntry,
  REPORT_KINDS,
} from '../../../machines/internal.ts';

const KINDS: Record<EffectValue['kind'], readonly EffectRequest['kind'][]> = {
  done: ['phase'],
  terminate: ['phase'],
  continue: ['phase'],
  answer: ['phase'],
  compact: ['phase'],
  summary: ['summary'],
  reply: ['model'],
  failed: ['model', 'summary'],
  allow: ['gate'],
  block: ['gate'],
  refuse: ['gate'],
  suspend: ['gate'],
  succeeded: ['tool'],
  erred: ['tool'],
  pending: ['tool'],
  shown: ['afterTool'],
  committed: ['commit'],
  context: ['context'],
};

export interface AnswerEvent {
  type: 'effect.done' | 'timer.elapsed';
  id: string;
  value?: EffectValue;
}

export const isAnswer = (event: { type: string }): event is AnswerEvent =>
  event.type === 'effect.done' || event.type === 'timer.elapsed';

/** Returns the request that `event` answers: a timer by its id, an effect by its id or else by kind, the newest first. */
export function answered(requests: Iterable<EffectRequest>, event: AnswerEvent): EffectRequest | undefined {
  const { id, value } = event;
  let match: EffectRequest | undefined;
  for (const request of requests) {
    if (request.id === id) return request;
    if (value && KINDS[value.kind].includes(request.kind) && event.type === 'effect.done') match = request;
  }
  return match;
}

/**
 * Returns the requests that are open after `event`: a commit whose entries were lost never began. A commit that was
 * given up may still complete.
 */
export function stillOpen(requests: readonly EffectRequest[], event: { type: string }): readonly EffectRequest[] {
  if (event.type !== 'append.failed') return requests;
  const { lost } = event as Extract<Completion, { type: 'append.failed' }>;
  const commits = lost.some(({ type }) => type === 'checkpoint');
  return commits ? requests.filter(({ kind }) => kind !== 'commit') : requests;
}

/** Returns the open requests after a step. A report has no answer, and an id is open once. */
export function openAfter(requests: readonly EffectRequest[], effects: readonly ChartEffect[]): EffectRequest[] {
  let open = [...requests];
  for (const effect of effects) {
    if (effect.type === 'ask' && !REPORT_KINDS.has(effect.request.kind)) {
      open = [...open.filter(({ id }) => id !== effect.request.id), effect.request];
    }
    if (effect.type === 'drop') open = open.filter(({ id }) => !id.startsWith(effect.prefix));
  }
  return open;
}

/** Returns the requests that a host starts for a step, in order, without those that are dropped again. */
export function startedBy(effects: readonly ChartEffect[]): EffectRequest[] {
  let requests: EffectRequest[] = [];
  for (const effect of effects) {
    if (effect.type === 'ask') requests.push(effect.request);
    if (effect.type === 'drop') requests = requests.filter(({ id }) => !id.startsWith(effect.prefix));
  }
  return requests;
}

/** Returns the entries that a step appends. */
export const loggedBy = (effects: readonly ChartEffect[]): NewEntry[] =>
  effects.flatMap((effect) => (effect.type === 'log' ? effect.entries : []));

/** An event that a chart sent. */
export interface Sent {
  /** Id of a child, or `parent`. */
  readonly to: string;
  /** The event. */
  readonly event: { readonly type: string };
}

/** Returns the events that a step sends to other charts. */
export const sentBy = (effects: readonly ChartEffect[]): Sent[] =>
  effects.flatMap((effect) => (effect.type === 'send' ? [{ to: effect.to, event: effect.event }] : []));
