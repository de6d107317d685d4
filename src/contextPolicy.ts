/**
 * The policy `context`: what happens at which share of the context window. Rule: each kind stands once, and nothing
 * happens where the model does not say how large its window is.
 */
import type { Settings } from '../machines/internal.ts';
import { type Form, isList, isObject } from './validation.ts';

const KINDS = ['warn', 'prune', 'compact', 'exhaust'] as const;
type Kind = (typeof KINDS)[number];
export type ContextPolicy = readonly { kind: Kind; at: number }[];

export const contextDefaults: ContextPolicy = [
  { kind: 'warn', at: 0.8 },
  { kind: 'prune', at: 0.8 },
  { kind: 'compact', at: 0.8 },
  { kind: 'exhaust', at: 0.95 },
];

const isShare = (at: unknown): boolean => typeof at === 'number' && at >= 0 && at <= 1;
const isStep = (step: unknown): boolean =>
  isObject(step) && Object.keys(step).length === 2 && KINDS.includes(step.kind as Kind) && isShare(step.at);

export const contextForm: Form = {
  wanted: `a list of { kind, at }, each kind (${KINDS.join(', ')}) once, at a share of 0 to 1`,
  takes: (value) =>
    isList(value) &&
    value.every(isStep) &&
    new Set((value as ContextPolicy).map(({ kind }) => kind)).size === value.length,
};

/** What the chart is to look at; nothing where no window is known or nothing is to happen. */
export function thresholdsOf(policy: ContextPolicy, window: number | undefined): Settings['context'] {
  if (typeof window !== 'number' || Number.isNaN(window)) return undefined;
  const steps = policy.flatMap(({ kind, at }) => (kind === 'compact' ? [] : [[kind, at] as const]));
  return steps.length > 0 ? Object.fromEntries(steps) : undefined;
}
