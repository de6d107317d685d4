/** Wires the executors of one conversation to what it knows. Rule: they see its folds and never its chart. */
import type { Subject } from 'rxjs';
import type { Json, Knowledge, Transcript } from '../machines/index.ts';
import { Effects } from './effects.ts';
import type { Images } from './images/images.ts';
import type { Live } from './live.ts';
import type { ConversationLog } from './log.ts';
import type { Surroundings } from './plugins/phases.ts';
import { NextRequest } from './request.ts';
import type { RuntimeOptions } from './runtimeOptions.ts';

export interface Wires {
  log: ConversationLog;
  known: Knowledge;
  transcript: Transcript;
  live: Subject<Live>;
  images: Images;
  diagnose(code: string, detail?: Json): void;
  state(): { readonly [key: string]: Json };
}

export function wiredEffects(options: RuntimeOptions, wires: Wires): Effects {
  const { id, cwd, instructions, models, toolbox, plugins, policies, ports, redact, attended } = options;
  const { log, known, transcript, live: signals, images, diagnose, state } = wires;
  const around: Surroundings = {
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
  return new Effects({ models, toolbox, plugins, policies, ports, around, redact, attended, live, state, images });
}
