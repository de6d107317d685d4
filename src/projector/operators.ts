/**
 * The projector as RxJS operators, with the text a model is streaming. Rule: a subscription has a projector of its own,
 * and two subscriptions share nothing. Streamed text is never stored: it belongs to one run, a `reset` of that run
 * drops it, and so does what commits or ends the reply; the rest of the view never depends on it.
 */
import { defer, filter, map, type OperatorFunction } from 'rxjs';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Live } from '../live.ts';
import { createProjector, type ProjectorOptions } from './projector.ts';
import type { ConversationView } from './view.ts';

export type LiveView = ConversationView & { inFlight: null | { text: string; reasoning: string } };

/**
 * The view after each entry.
 *
 *     log$.pipe(resolutionSteps()).subscribe((view) => render(view.cycles));
 */
export function resolutionSteps(options?: ProjectorOptions): OperatorFunction<LogEntry, ConversationView> {
  return (entries$) =>
    defer(() => {
      const projector = createProjector(options);
      return entries$.pipe(
        map((entry) => {
          projector.push(entry);
          return projector.view();
        }),
      );
    });
}

/**
 * The view after each entry and each piece of streamed text. `inFlight` is the text of the reply that is under way,
 * null where there is none; the other live signals change nothing and emit nothing.
 *
 *     merge(log$, live$).pipe(withLiveText()).subscribe(({ cycles, inFlight }) => render(cycles, inFlight));
 */
export function withLiveText(options?: ProjectorOptions): OperatorFunction<LogEntry | Live, LiveView> {
  return (signals$) =>
    defer(() => {
      const projector = createProjector(options);
      let inFlight: StreamedText | null = null;
      return signals$.pipe(
        map((signal) => {
          const reading = readSignal(signal);
          const before = inFlight;
          inFlight = applySignal(before, reading);
          if (!reading.live) projector.push(signal);
          else if (inFlight === before) return undefined;
          return joinedView(projector.view(), inFlight);
        }),
        filter((view) => view !== undefined),
      );
    });
}

/** The long lists stay unread until somebody reads them. */
function joinedView(view: ConversationView, inFlight: StreamedText | null): LiveView {
  return Object.freeze({
    state: view.state,
    get cycles() {
      return view.cycles;
    },
    get queued() {
      return view.queued;
    },
    diagnostics: view.diagnostics,
    inFlight: inFlight === null ? null : Object.freeze({ text: inFlight.text, reasoning: inFlight.reasoning }),
  });
}

/** More than this is cut off: strings have a length beyond which joining them throws. */
const TEXT_MAX = 1 << 24;

interface StreamedText {
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

interface SignalReading {
  live: boolean;
  type: unknown;
  runId: unknown;
  text: unknown;
}

/** The little that matters of a live signal or an entry. Never throws. */
function readSignal(value: unknown): SignalReading {
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
function applySignal(inFlight: StreamedText | null, { type, runId, text }: SignalReading): StreamedText | null {
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
