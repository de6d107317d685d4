/**
 * What hooks and permissions have to say of a call, beyond what a phase can answer. Rule: the order is hooks, rules,
 * other plugins, whatever the order of the plugins is. After an approval no hook is asked again and only a denial counts; edited
 * arguments are judged like the model's.
 */
import type { Json, LogEntry } from '../../machines/internal.ts';
import type { CallGrant, NetworkChoice } from '../tools/tool.ts';
import type { RequestDraft } from './plugin.ts';

/** By a name of its own, so that two copies of the library in one program understand each other. */
export const CALL_CHECKS: unique symbol = Symbol.for('runchart.callChecks') as never;

export interface CheckedCall {
  conversationId: string;
  runId: string;
  callId: string;
  name: string;
  args: Json;
  cwd: string;
  /** The tool says of itself that it changes nothing. */
  readOnly: boolean;
  /** The tool wants approval for these arguments. */
  needsApproval: boolean;
  /** The tool runs commands in a sandbox, and whether these reach the network. */
  sandbox: NetworkChoice | undefined;
  signal: AbortSignal;
  setTimer(ms: number, fire: () => void): () => void;
  diagnose(code: string, detail?: Json): void;
}

/** What a hook says before the rules are asked. */
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
  /** What whoever decides should see. */
  payload?: Json;
  /** What was judged: where the call may run, it runs so. */
  grant?: CallGrant;
}

/** Without a decision the question stays, about the new arguments where there are some. */
export type RequestVerdict =
  | { decision?: 'allow'; by: string; args?: Json }
  | { decision: 'deny'; reason: string; stop?: boolean };

export interface CallChecks {
  before?(call: CheckedCall): Promise<HookVerdict | undefined>;
  permit?(call: CheckedCall, hook: HookVerdict['decision']): Promise<RuleVerdict>;
  /** A call that the rules ask about: what comes back spares the question. */
  requested?(call: CheckedCall, verdict: RuleVerdict): Promise<RequestVerdict | undefined>;
  /** The conversation is closed. */
  closed?(
    conversation: Omit<PhasePorts, 'stop' | 'executed' | 'next'> & { conversationId: string; cwd: string },
  ): Promise<void>;
}

/** What the library's own plugins have besides the public context of a phase. */
export const PHASE_PORTS: unique symbol = Symbol.for('runchart.phasePorts') as never;

export interface PhasePorts {
  /** The log as it is; not a copy. */
  entries: readonly LogEntry[];
  /** What the next request is made of. */
  next: Pick<RequestDraft, 'instructions' | 'model'>;
  setTimer(ms: number, fire: () => void): () => void;
  diagnose(code: string, detail?: Json): void;
  /** The run makes no further model call and ends as Stopped, cause `hook`. */
  stop(reason: string): void;
  /** Of a call that is over: whether its tool was executed. */
  executed?: boolean;
}
export const portsOf = (context: object): PhasePorts | undefined =>
  (context as { [PHASE_PORTS]?: PhasePorts })[PHASE_PORTS];

export interface ChecksCalls {
  [CALL_CHECKS]?: CallChecks;
}
