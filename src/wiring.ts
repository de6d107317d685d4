/** Wires executors and journal of one conversation to what it knows. Rule: they see its folds and never its chart. */
import type { Journal, Json, Knowledge, Transcript } from '../machines/internal.ts';
import { Effects } from './effects.ts';
import type { Images } from './images/images.ts';
import { EmbeddedJournal, type JournalOptions } from './journal.ts';
import type { Live, LiveFeed } from './live.ts';
import type { ConversationLog } from './log.ts';
import type { ConversationScope } from './plugins/gate.ts';
import { NextRequest } from './request.ts';
import type { RuntimeOptions } from './runtimeOptions.ts';

export interface Wires {
  log: ConversationLog;
  known: Knowledge;
  transcript: Transcript;
  live: LiveFeed;
  images: Images;
  diagnose(code: string, detail?: Json): void;
  state(): { readonly [key: string]: Json };
}

export function wiredEffects(options: RuntimeOptions, wires: Wires): Effects {
  const { id, cwd, instructions, models, toolbox, plugins, policies, ports, redact, attended, textCalls, Phases } =
    options;
  const { log, known, transcript, live: signals, images, diagnose, state } = wires;
  const around: ConversationScope = {
    conversationId: id,
    cwd,
    entries: log.entries,
    transcript,
    known,
    next: new NextRequest({ instructions, toolbox, transcript, model: models[0] }),
    reply: undefined,
    setTimer: ports.setTimer,
    diagnose,
  };
  const send = (signal: Live): void => signals.next(signal);
  const live = () => (signals.observed ? send : undefined);
  return new Effects({
    models,
    toolbox,
    plugins,
    policies,
    ports,
    around,
    redact,
    attended,
    live,
    state,
    images,
    textCalls,
    Phases,
  });
}

/** The journal that the host put around the embedded one, or that one itself. */
export function wiredJournal(
  { id, ports }: RuntimeOptions,
  log: ConversationLog,
  wires: Omit<JournalOptions, 'append' | 'now' | 'setTimer'>,
): Journal {
  const { now, setTimer } = ports;
  const embedded = new EmbeddedJournal({ ...wires, append: (batch, at) => log.follow(batch, at), now, setTimer });
  return ports.journal?.(embedded, id) ?? embedded;
}
