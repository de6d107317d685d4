/**
 * The text a model is streaming (run-lifecycle has no event for it: it is never stored). Rule: it belongs to one run, a
 * `reset` of that run drops it, and so does what commits or ends the reply; the rest of the view never depends on it.
 */
/** More than this is cut off: strings have a length beyond which joining them throws. */
const TEXT_MAX = 1 << 24;

export interface InFlight {
  readonly runId: string;
  readonly text: string;
  readonly reasoning: string;
}

const LIVE = new Set<unknown>([
  'text-delta',
  'reasoning-delta',
  'tool-input-delta',
  'reset',
  'tool-progress',
  'status',
  'state',
]);
const ENDS = new Set<unknown>(['agent-output', 'model-reply', 'run-stop', 'run-suspended']);

export interface SignalReading {
  live: boolean;
  type: unknown;
  runId: unknown;
  text: unknown;
}

/** The little that matters of a live signal or an entry. Never throws. */
export function readSignal(value: unknown): SignalReading {
  try {
    const { type, runId, text, path } = value as Record<string, unknown>;
    const live = LIVE.has(type);
    // A sub-agent's reply is not this conversation's.
    return { live, type: live && path !== undefined ? undefined : type, runId, text };
  } catch {
    return { live: false, type: undefined, runId: undefined, text: undefined };
  }
}

/** The text in flight after a signal; the same object where nothing changed. */
export function fly(inFlight: InFlight | null, { type, runId, text }: SignalReading): InFlight | null {
  if (type === 'reset' || ENDS.has(type)) {
    return typeof runId === 'string' && inFlight !== null && runId !== inFlight.runId ? inFlight : null;
  }
  if ((type !== 'text-delta' && type !== 'reasoning-delta') || typeof text !== 'string' || typeof runId !== 'string') {
    return inFlight;
  }
  const before = inFlight?.runId === runId ? inFlight : { runId, text: '', reasoning: '' };
  const field = type === 'text-delta' ? 'text' : 'reasoning';
  return { ...before, [field]: joined(before[field], text) };
}

const joined = (before: string, text: string): string => before + text.slice(0, TEXT_MAX - before.length);
