/**
 * The projector as RxJS operators, with the text that a model is streaming. Invariant: each subscription has its own
 * projector. Streamed text is never stored. It belongs to one run, until the reply is committed, the run ends, or a
 * `reset` of that run drops it. The rest of the view never depends on it.
 */
import { defer, filter, map, type OperatorFunction } from 'rxjs';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Live } from '../live.ts';
import { createProjector, type ProjectorOptions } from './projector.ts';
import type { ConversationView } from './view.ts';

/** A view with the text that the current reply has streamed. */
export type LiveView = ConversationView & { inFlight: null | { text: string; reasoning: string } };

/**
 * An RxJS operator from log entries to views. Emits the view after each entry.
 * @example log$.pipe(resolutionSteps()).subscribe((view) => render(view.cycles));
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
 * An RxJS operator from entries and live signals to views. Emits the view after each entry and each piece of streamed text.
 * `inFlight` is the text of the current reply, or null. Other live signals emit nothing.
 * @example merge(log$, live$).pipe(withLiveText()).subscribe(({ cycles, inFlight }) => render(cycles, inFlight));
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

/** Long lists are not built until they are read. */
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

/** Longer text is cut off: joining strings over the engine's limit throws. */
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

/** Reads the few fields that matter of a live signal or an entry. Never throws. */
function readSignal(value: unknown): SignalReading {
  try {
    const { type, runId, text, path } = value as Record<string, unknown>;
    const live = LIVE.has(type);
    // The reply of a sub-agent is not part of this conversation.
    return { live, type: live && path !== undefined ? undefined : type, runId, text };
  } catch {
    return { live: false, type: undefined, runId: undefined, text: undefined };
  }
}

/** Returns the text in flight after a signal: the same object if nothing changed. */
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
