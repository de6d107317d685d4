/**
 * The hooks plugin runs a host's functions and a user's commands at the events of a session. Rule: the hooks of an
 * event run one after another, and the first that blocks is the last. A failed hook changes nothing, unless it is a
 * required check of a call: then the call is blocked.
 */
import type { LogEntry } from '../../machines/internal.ts';
import { ConfigurationError } from '../errors.ts';
import {
  CALL_CHECKS,
  type CallChecks,
  type CheckedCall,
  type ChecksCalls,
  type HookVerdict,
  type PhasePorts,
  portsOf,
  type RequestVerdict,
} from '../plugins/callChecks.ts';
import type { PhaseContext, Plugin } from '../plugins/plugin.ts';
import { callback, checkOptionsOf, flag, list, object, text, whole } from '../validation.ts';
import {
  type Hook,
  type HookAnswer,
  type HookEvent,
  type HookInput,
  type HookOutput,
  type HookPorts,
  runHook,
} from './runHook.ts';

const EVENTS: readonly HookEvent[] = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PermissionRequest',
  'PostToolUse',
  'PostToolUseFailure',
  'Notification',
  'PreCompact',
  'SubagentStart',
  'SubagentStop',
  'Stop',
  'SessionEnd',
];

/** The hooks for each event, in the order in which they run. */
export type HookOptions = { [E in HookEvent]?: Hook[] };

const hookValidator = object({ matcher: text, required: flag, timeoutMs: whole(1), run: callback, command: text });
const optionsValidator = object(Object.fromEntries(EVENTS.map((event) => [event, list('hooks')])));

/**
 * Makes a plugin that runs commands or functions at events of a session. Throws ConfigurationError for an unknown event and
 * for an invalid hook.
 */
export function hooks(options: HookOptions): Plugin {
  checkOptionsOf('hooks', options, optionsValidator);
  const made = new Map<HookEvent, MatchedHook[]>();
  for (const event of EVENTS)
    made.set(
      event,
      (options[event] ?? []).map((hook) => matched(event, hook)),
    );
  return new HooksPlugin(made);
}

interface MatchedHook {
  hook: Hook;
  fits(toolName: string | undefined): boolean;
}

function matched(event: HookEvent, hook: Hook): MatchedHook {
  checkOptionsOf(`hooks, a hook of ${event}`, hook, hookValidator);
  const action: { run?: unknown; command?: unknown } = hook;
  if ((action.run === undefined) === (action.command === undefined) || action.command === '') {
    throw new ConfigurationError(`a hook of ${event} needs either run, a function, or command, a text`);
  }
  const { matcher = '' } = hook;
  if (matcher === '' || matcher === '*') return { hook, fits: () => true };
  try {
    const whole = new RegExp(`^(?:${matcher})$`);
    return { hook, fits: (toolName) => toolName !== undefined && whole.test(toolName) };
  } catch (cause) {
    throw new ConfigurationError(
      `the matcher ${JSON.stringify(matcher)} of a hook of ${event} is no regular expression`,
      {
        cause,
      },
    );
  }
}

interface Session {
  isChild: boolean;
  source: 'startup' | 'resume';
  /** Its first hooks have answered. A cancellation before that loses their context. */
  hasStarted: boolean;
  /** The number of log entries that were searched for prompts. */
  entriesRead: number;
  runId: string;
}
/** The results of the hooks of one event. */
interface HookResults {
  outputs: HookOutput[];
  /** The failure of a required hook. */
  failed?: string;
}
type Where = HookPorts & Pick<PhasePorts, 'diagnose'>;

const SUPPRESSED = '[a hook has suppressed this output]';
const GO_ON = 'A hook wants you to go on.';

class HooksPlugin implements Plugin, ChecksCalls {
  readonly name = 'hooks';
  readonly #hooks: ReadonlyMap<HookEvent, readonly MatchedHook[]>;
  readonly #sessions = new Map<string, Session>();

  constructor(hooks: ReadonlyMap<HookEvent, readonly MatchedHook[]>) {
    this.#hooks = hooks;
  }

  readonly runStart = async (c: PhaseContext): Promise<{ context?: string } | undefined> => {
    const { entries } = needed(c);
    const begins = startOfRun(entries);
    const session = this.#sessions.get(c.conversationId) ?? newSession(entries, begins);
    Object.assign(session, { entriesRead: begins, runId: c.runId });
    this.#sessions.set(c.conversationId, session);
    if (session.hasStarted) return undefined;
    const { isChild, source } = session;
    const event = isChild ? 'SubagentStart' : 'SessionStart';
    const results = await this.#fire({ ...about(c), event, source }, whereOf(c));
    session.hasStarted = true;
    return contextOf(results);
  };

  readonly stepStart = async (c: PhaseContext): Promise<{ context?: string } | undefined> => {
    const { entries, stop } = needed(c);
    const session = this.#sessions.get(c.conversationId);
    const outputs: HookOutput[] = [];
    for (const prompt of promptsFrom(entries, session?.entriesRead ?? 0)) {
      const results = await this.#fire({ ...about(c), event: 'UserPromptSubmit', prompt }, whereOf(c));
      outputs.push(...results.outputs);
      const refused = results.outputs.find(ends);
      if (refused) stop(reasonOf(refused));
    }
    if (session) session.entriesRead = entries.length;
    return contextOf({ outputs });
  };

  /** Its presence makes every call pass the permission gate; `CALL_CHECKS` makes the decision. */
  readonly beforeToolExecute = (): void => undefined;

  readonly afterToolExecute: NonNullable<Plugin['afterToolExecute']> = async (c) => {
    const { call, outcome, result } = c;
    const { executed, stop } = needed(c);
    const base = { ...about(c), toolName: call.name, callId: call.callId, args: call.args };
    const words = textOf(result);
    if (outcome === 'suspended') {
      await this.#fire({ ...base, event: 'Notification', source: 'suspended' }, whereOf(c));
      return undefined;
    }
    if (!executed || (outcome !== 'succeeded' && outcome !== 'failed')) return undefined;
    const results =
      outcome === 'succeeded'
        ? await this.#fire({ ...base, event: 'PostToolUse', result: words }, whereOf(c))
        : await this.#fire({ ...base, event: 'PostToolUseFailure', error: words }, whereOf(c));
    const stopped = results.outputs.find((output) => output.continue === false);
    if (stopped) stop(reasonOf(stopped));
    // The call has already run, so the model receives the hook's objection beside the result.
    const objections = results.outputs.flatMap(({ decision, reason }) =>
      decision === 'block' && reason ? [reason] : [],
    );
    const { context } = contextOf(results) ?? {};
    const added = [...(context === undefined ? [] : [context]), ...objections].join('\n');
    const isSuppressed = results.outputs.some(({ suppressOutput }) => suppressOutput === true);
    return { ...(isSuppressed && { result: SUPPRESSED }), ...(added !== '' && { context: added }) };
  };

  readonly naturalEnd = async (c: PhaseContext): Promise<{ continue: string } | undefined> => {
    const results = await this.#fire({ ...about(c), event: 'Stop' }, whereOf(c));
    const continuing = results.outputs.find(continuesRun);
    return (
      continuing && { continue: continuing.reason ?? continuing.additionalContext ?? continuing.stopReason ?? GO_ON }
    );
  };

  readonly preCompact = async (
    c: PhaseContext & { source: 'auto' | 'manual' },
  ): Promise<{ block: string } | { instructions: string } | undefined> => {
    const results = await this.#fire({ ...about(c), event: 'PreCompact', source: c.source }, whereOf(c));
    const refused = results.outputs.find(ends);
    if (refused) return { block: reasonOf(refused) };
    const { context } = contextOf(results) ?? {};
    return context === undefined ? undefined : { instructions: context };
  };

  readonly [CALL_CHECKS]: CallChecks = {
    before: (call) => this.#before(call),
    requested: (call) => this.#requested(call),
    closed: async ({ conversationId, cwd, setTimer, diagnose }) => {
      const session = this.#sessions.get(conversationId);
      if (!session) return;
      this.#sessions.delete(conversationId);
      const { signal } = new AbortController();
      const event = session.isChild ? 'SubagentStop' : 'SessionEnd';
      await this.#fire({ event, conversationId, runId: session.runId, cwd }, { setTimer, signal, diagnose });
    },
  };

  async #before(call: CheckedCall): Promise<HookVerdict | undefined> {
    const { outputs, failed } = await this.#fire({ ...ofCall(call), event: 'PreToolUse' }, call);
    const last = outputs.at(-1);
    if (last && ends(last)) return { block: `Blocked by a hook: ${reasonOf(last)}`, stop: last.continue === false };
    if (failed !== undefined) return { block: `A required hook failed, so the call was not run: ${failed}` };
    const { args, isAllowed } = rewriteOf(outputs);
    const isAsked = outputs.some(({ decision }) => decision === 'ask');
    const decision = isAsked ? 'ask' : isAllowed ? 'allow' : undefined;
    return { ...(args !== undefined && { args }), ...(decision && { decision }) };
  }

  async #requested(call: CheckedCall): Promise<RequestVerdict | undefined> {
    const { outputs } = await this.#fire({ ...ofCall(call), event: 'PermissionRequest' }, call);
    const last = outputs.at(-1);
    if (last && ends(last)) return { decision: 'deny', reason: reasonOf(last), stop: last.continue === false };
    const { args, isAllowed } = rewriteOf(outputs);
    if (!isAllowed && args === undefined) return undefined;
    return { by: 'hook', ...(isAllowed && { decision: 'allow' as const }), ...(args !== undefined && { args }) };
  }

  /** Runs the hooks of an event until one blocks. After a rewrite, the next hook receives the new arguments. */
  async #fire(firstInput: HookInput, { setTimer, signal, diagnose }: Where): Promise<HookResults> {
    let input = firstInput;
    const results: HookResults = { outputs: [] };
    for (const { hook, fits } of this.#hooks.get(firstInput.event) ?? []) {
      if (!fits(firstInput.toolName)) continue;
      const answer = usable(firstInput.event, await runHook(hook, input, { setTimer, signal }));
      if (answer.kind === 'failed') {
        diagnose('hook_error', { event: firstInput.event, message: answer.message });
        if (hook.required === false) continue;
        results.failed ??= answer.message;
        if (firstInput.event === 'PreToolUse') break;
        continue;
      }
      const { output } = answer;
      results.outputs.push(output);
      if (output.updatedInput !== undefined) input = { ...input, args: output.updatedInput };
      if (firstInput.event === 'Stop' ? continuesRun(output) : ends(output)) break;
    }
    return results;
  }
}

/** Events before a call runs, where a hook may rewrite the arguments. */
const REWRITES: readonly HookEvent[] = ['PreToolUse', 'PermissionRequest'];

/** An answer that rewrites arguments at another event counts as failed. */
function usable(event: HookEvent, answer: HookAnswer): HookAnswer {
  if (answer.kind === 'failed' || answer.output.updatedInput === undefined || REWRITES.includes(event)) return answer;
  return { kind: 'failed', message: `updatedInput is for ${REWRITES.join(' and ')}, not for ${event}` };
}

/** The hook blocks the act of the event. */
const ends = (output: HookOutput): boolean => output.continue === false || output.decision === 'block';
/** For the Stop event, blocking means that the run continues. */
const continuesRun = (output: HookOutput): boolean => output.continue === true || output.decision === 'block';

const reasonOf = ({ reason, stopReason }: HookOutput): string => reason ?? stopReason ?? 'a hook refused it';

function needed(c: PhaseContext): PhasePorts {
  const ports = portsOf(c);
  if (!ports)
    throw new TypeError('hooks() must be given to createAgent as it is: a phase was called with a context of its own');
  return ports;
}

/** The last new arguments. A hook that allowed the call before another one rewrote it has not allowed these. */
function rewriteOf(outputs: readonly HookOutput[]): { args: HookOutput['updatedInput']; isAllowed: boolean } {
  const rewrite = outputs.map(({ updatedInput }) => updatedInput !== undefined).lastIndexOf(true);
  const isAllowed = outputs.slice(Math.max(0, rewrite)).some(({ decision }) => decision === 'allow');
  return { args: outputs[rewrite]?.updatedInput, isAllowed };
}

const whereOf = (c: PhaseContext): Where => ({ ...needed(c), signal: c.signal });
const about = ({ conversationId, runId, cwd }: PhaseContext) => ({ conversationId, runId, cwd });

function ofCall({ conversationId, runId, cwd, name, callId, args }: CheckedCall) {
  return { conversationId, runId, cwd, toolName: name, callId, args };
}

function contextOf({ outputs }: HookResults): { context: string } | undefined {
  const texts = outputs.flatMap(({ additionalContext }) => (additionalContext ? [additionalContext] : []));
  return texts.length === 0 ? undefined : { context: texts.join('\n') };
}

const textOf = (content: readonly { type: string; text?: string }[]): string =>
  content.map((part) => part.text ?? `[${part.type}]`).join('\n');

function newSession(entries: readonly LogEntry[], begins: number): Session {
  const first = entries[0];
  const isChild = first?.type === 'conversation' && first.parent !== undefined;
  const source = entries.slice(1, begins).some(({ type }) => type === 'run-started') ? 'resume' : 'startup';
  return { isChild, source, hasStarted: false, entriesRead: begins, runId: '' };
}

/** The index of the first entry of the current run. */
function startOfRun(entries: readonly LogEntry[]): number {
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    const type = entries[at]?.type;
    if (type === 'run-started' || type === 'run-resumed') return at;
  }
  return entries.length;
}

function promptsFrom(entries: readonly LogEntry[], from: number): string[] {
  return entries.slice(from).flatMap((entry) => (entry.type === 'user-message' ? [textOf(entry.content)] : []));
}
