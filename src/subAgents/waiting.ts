/**
 * What is on record of a call whose sub-agents wait for a person. Rule: for each that waits which of its calls do, and
 * how far its log had come; what reads it is given any payload.
 */
import type { Json } from '../../machines/internal.ts';

/** Why a call waits whose sub-agents do. */
export const WAITS = 'sub-agent';

interface Waiting {
  readonly task: { id: string };
  readonly pending: readonly { callId: string }[];
  /** How many entries its log has. */
  readonly upTo: number;
}

export const waitingPayload = (waiting: readonly Waiting[]): Json => ({
  waiting: waiting.map(({ task, pending, upTo }) => ({ id: task.id, calls: pending.map((call) => call.callId), upTo })),
});

type Fields = { [key: string]: Json };
export const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

/** How far the log of the sub-agent of this task had come; nothing where the payload does not say. */
export function waitingPlace(payload: Json | undefined, taskId: string): number | undefined {
  const { waiting } = fieldsOf(payload);
  const own = Array.isArray(waiting) ? waiting.map(fieldsOf).find(({ id }) => id === taskId) : undefined;
  return typeof own?.upTo === 'number' ? own.upTo : undefined;
}
