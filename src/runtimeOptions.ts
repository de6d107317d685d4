/** What one living conversation is made of. Rule: everything is checked and chosen before it gets here. */
import type { LogEntry } from '../machines/internal.ts';
import type { Model } from './models/model.ts';
import type { TextCalls } from './models/textCalls.ts';
import type { Policies } from './options.ts';
import type { PhaseRunner } from './plugins/phases.ts';
import type { Plugin } from './plugins/plugin.ts';
import type { Ports } from './ports.ts';
import type { Redact } from './redact.ts';
import type { Interpreter } from './runtime/interpreter/interpreter.ts';
import type { LogHandle } from './stores/store.ts';
import type { Toolbox } from './tools/toolbox.ts';

/** Parts of the library that were loaded for it. */
export interface OnDemand {
  /** Where the policy `textToolCalls` names a format. */
  textCalls?: TextCalls;
  /** Runs the phases; there where the agent has plugins. */
  Phases?: typeof PhaseRunner;
  /** Where it is not the compiled one. */
  interpreter?: Interpreter;
}

export interface RuntimeOptions extends OnDemand {
  id: string;
  cwd: string;
  handle: LogHandle;
  entries: LogEntry[];
  instructions: string;
  models: readonly [Model, ...Model[]];
  toolbox: Toolbox;
  plugins: readonly Plugin[];
  policies: Policies;
  ports: Ports;
  redact: Redact;
  attended: boolean;
  inspect?: (event: unknown) => void;
}
