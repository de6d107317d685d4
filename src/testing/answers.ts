/**
 * Which answer fits which request of a chart. Rule: an answer comes only to what was asked and not dropped, and its
 * kind is one that the request can have; so a path never holds an event that no host could deliver.
 */
import type { ChartEffect, Completion, EffectRequest, EffectValue, NewEntry } from '../../machines/internal.ts';

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

/** The request that `event` answers: a timer by its id, an effect by its id or else by kind, the newest first. */
export function answered(asked: Iterable<EffectRequest>, event: AnswerEvent): EffectRequest | undefined {
  const { id, value } = event;
  let found: EffectRequest | undefined;
  for (const request of asked) {
    if (request.id === id) return request;
    if (value && KINDS[value.kind].includes(request.kind) && event.type === 'effect.done') found = request;
  }
  return found;
}

/** What is open when `event` has come: a commit whose entries were not stored never began; one given up may still land. */
export function stillOpen(asked: readonly EffectRequest[], event: { type: string }): readonly EffectRequest[] {
  if (event.type !== 'append.failed') return asked;
  const { lost } = event as Extract<Completion, { type: 'append.failed' }>;
  const commits = lost.some(({ type }) => type === 'checkpoint');
  return commits ? asked.filter(({ kind }) => kind !== 'commit') : asked;
}

/** What is open after a step's effects; a run's end has no answer, and an id is open once. */
export function openAfter(asked: readonly EffectRequest[], effects: readonly ChartEffect[]): EffectRequest[] {
  let open = [...asked];
  for (const effect of effects) {
    if (effect.type === 'ask' && effect.request.kind !== 'ended') {
      open = [...open.filter(({ id }) => id !== effect.request.id), effect.request];
    }
    if (effect.type === 'drop') open = open.filter(({ id }) => !id.startsWith(effect.prefix));
  }
  return open;
}

/** What a host starts for a step: what it asks for and does not drop again, in ask order. */
export function startedBy(effects: readonly ChartEffect[]): EffectRequest[] {
  let asked: EffectRequest[] = [];
  for (const effect of effects) {
    if (effect.type === 'ask') asked.push(effect.request);
    if (effect.type === 'drop') asked = asked.filter(({ id }) => !id.startsWith(effect.prefix));
  }
  return asked;
}

/** What a step appends. */
export const loggedBy = (effects: readonly ChartEffect[]): NewEntry[] =>
  effects.flatMap((effect) => (effect.type === 'log' ? effect.entries : []));

export interface Sent {
  /** Id of a child, or `parent`. */
  readonly to: string;
  readonly event: { readonly type: string };
}

/** What a step tells other charts. */
export const sentBy = (effects: readonly ChartEffect[]): Sent[] =>
  effects.flatMap((effect) => (effect.type === 'send' ? [{ to: effect.to, event: effect.event }] : []));
