/**
 * The checks of a call by hooks and permission rules, which a phase cannot express. Rule: hooks come first, then rules, then other
 * plugins, whatever the order of the plugins is. After an approval no hook is called again and only a denial counts. Edited
 * arguments are judged like those of the model.
 */
import type { Json, LogEntry } from '../../machines/internal.ts';
import type { CallGrant, NetworkChoice } from '../tools/tool.ts';
import type { RequestDraft } from './plugin.ts';

/** A registered symbol, so that two copies of the library in one program share it. */
export const CALL_CHECKS: unique symbol = Symbol.for('runchart.callChecks') as never;

export interface CheckedCall {
  conversationId: string;
  /** The conversation whose call started this one as a sub-agent. */
  parentId?: string;
  runId: string;
  callId: string;
  name: string;
  args: Json;
  cwd: string;
  /** The tool is declared read-only. */
  readOnly: boolean;
  /** The tool starts sub-agents. */
  spawns: boolean;
  /** The tool wants approval for these arguments. */
  needsApproval: boolean;
  /** The tool runs commands in a sandbox, and whether these reach the network. */
  sandbox: NetworkChoice | undefined;
  signal: AbortSignal;
  setTimer(ms: number, fire: () => void): () => void;
  diagnose(code: string, detail?: Json): void;
}

/** The answer of a hook, before the rules judge the call. */
export interface HookVerdict {
  block?: string;
  /** The run ends with this call. */
  stop?: boolean;
  args?: Json;
  decision?: 'allow' | 'ask';
}

export interface RuleVerdict {
  outcome: 'allow' | 'ask' | 'deny';
  by: string;
  /** Shown to the person who decides. */
  payload?: Json;
  /** The judged access. An allowed call runs with exactly this grant. */
  grant?: CallGrant;
}

/** Without a decision the call still asks, with the new arguments if there are any. */
export type RequestVerdict =
  | { decision?: 'allow'; by: string; args?: Json }
  | { decision: 'deny'; reason: string; stop?: boolean };

export interface CallChecks {
  before?(call: CheckedCall): Promise<HookVerdict | undefined>;
  permit?(call: CheckedCall, hook: HookVerdict['decision']): Promise<RuleVerdict>;
  /** The rules ask about this call. The answer replaces the question. */
  requested?(call: CheckedCall, verdict: RuleVerdict): Promise<RequestVerdict | undefined>;
  /** The conversation is closed. */
  closed?(
    conversation: Omit<PhasePorts, 'stop' | 'executed' | 'next'> & { conversationId: string; cwd: string },
  ): Promise<void>;
}

/** The fields that the library's own plugins receive besides the public context of a phase. */
export const PHASE_PORTS: unique symbol = Symbol.for('runchart.phasePorts') as never;

export interface PhasePorts {
  /** The live log, not a copy. */
  entries: readonly LogEntry[];
  /** The draft of the next request. */
  next: Pick<RequestDraft, 'instructions' | 'model'>;
  setTimer(ms: number, fire: () => void): () => void;
  diagnose(code: string, detail?: Json): void;
  /** The run makes no further model call and ends as Stopped, cause `hook`. */
  stop(reason: string): void;
  /** Whether the tool of a finished call was executed. */
  executed?: boolean;
}
export const portsOf = (context: object): PhasePorts | undefined =>
  (context as { [PHASE_PORTS]?: PhasePorts })[PHASE_PORTS];

export interface ChecksCalls {
  [CALL_CHECKS]?: CallChecks;
}
