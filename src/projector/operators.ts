/**
 * The projector as RxJS operators. Rule: a subscription has a projector of its own, and nothing is shared or kept
 * between two.
 */
import { defer, filter, map, type OperatorFunction } from 'rxjs';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Live } from '../live.ts';
import { fly, type InFlight, readSignal } from './inFlight.ts';
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
      let inFlight: InFlight | null = null;
      return signals$.pipe(
        map((signal) => {
          const reading = readSignal(signal);
          const before = inFlight;
          inFlight = fly(before, reading);
          if (!reading.live) projector.push(signal);
          else if (inFlight === before) return undefined;
          return joinedView(projector.view(), inFlight);
        }),
        filter((view) => view !== undefined),
      );
    });
}

/** The long lists stay unread until somebody reads them. */
function joinedView(view: ConversationView, inFlight: InFlight | null): LiveView {
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
