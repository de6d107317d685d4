/**
 * Permission rules, hooks and a host that answers for a person, in simulated lives. Invariant: hooks fail, hang, answer
 * late or return nonsense. Each timely answer is recorded, and no tool may run against it.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import { hooks } from '../../../src/hooks/hooks.ts';
import type { Hook, HookInput, HookOutput } from '../../../src/hooks/runHook.ts';
import { type Permissions, permissions } from '../../../src/permissions/permissions.ts';
import { PERMISSION_MODES, type PermissionMode, type PermissionOutcome } from '../../../src/permissions/verdict.ts';
import type { Plugin } from '../../../src/plugins/plugin.ts';
import { SECRET } from '../../../src/testing/simulation/world/simulatedModel.ts';
import type { CheckedWorld } from '../checks/checkedWorld.ts';
import { callKey } from '../checks/lifeFacts.ts';
import type { Beginning, Equipment, Parts } from './equipment.ts';

const TOOLS = [
  'note',
  'look',
  'fetch',
  'pay',
  'ask',
  'save',
  'show',
  'rest',
  'mcp__sim__look',
  'mcp__sim__set',
] as const;
const LISTS = ['allow', 'allow', 'none', 'allow', 'ask', 'allow', 'none', 'deny'] as const;
type List = (typeof LISTS)[number];
/** The time that the library waits for the host's own answer. */
const DECIDE_MS = 30_000;

/** The rules of one life, and their verdict on a call, written independently of the sources. */
class Rules {
  readonly mode: PermissionMode;
  readonly #lists = new Map<string, List>([['spawn_agents', 'allow']]);
  /** The tools that a person allowed for the rest of the process. */
  readonly remembered = new Set<string>();

  constructor(world: CheckedWorld) {
    const { tape } = world;
    this.mode = tape.pick(['default', 'default', 'default', ...PERMISSION_MODES]);
    for (const tool of TOOLS) this.#lists.set(tool, tape.pick(LISTS));
  }

  named(list: List): string[] {
    const tools = [...this.#lists].filter(([, each]) => each === list).map(([tool]) => tool);
    // Names are case-insensitive.
    return tools.map((tool, index) => (index % 2 === 0 ? tool : tool.toUpperCase()));
  }

  verdict({ name, traits }: Beginning, hook: 'allow' | 'ask' | undefined, isReplay: boolean): PermissionOutcome {
    const outcome = this.#outcome(name, traits, hook, isReplay);
    return this.mode === 'dontAsk' && outcome === 'ask' ? 'deny' : outcome;
  }

  #outcome(
    name: string,
    { readOnly, needsApproval }: Beginning['traits'],
    hook: 'allow' | 'ask' | undefined,
    isReplay: boolean,
  ): PermissionOutcome {
    const list = this.#lists.get(name);
    if (list === 'deny' || (this.mode === 'plan' && !readOnly)) return 'deny';
    if (list === 'ask' || hook === 'ask' || (needsApproval && !isReplay)) return 'ask';
    const isFree = list === 'allow' || this.remembered.has(name) || readOnly;
    return isFree || hook === 'allow' || this.mode === 'bypass' ? 'allow' : 'ask';
  }
}

const FAULTS = ['throws', 'hangs', 'nonsense', 'nonsense'] as const;
const NONSENSE = [5, 'yes', { decision: 'approve' }, { reason: 7 }, { continue: 'no' }] as const;
type Answers = { readonly [kind: string]: HookOutput };
const EVERY: Answers = { context: { additionalContext: 'said a hook' } };
const ANSWERS = {
  PreToolUse: {
    ...EVERY,
    allow: { decision: 'allow' },
    ask: { decision: 'ask' },
    block: { decision: 'block', reason: `not this, by ${SECRET}` },
    rewrite: { updatedInput: { text: 'by a hook' } },
    misfit: { updatedInput: { text: 5 } },
    stop: { continue: false, stopReason: 'that is enough' },
  },
  PermissionRequest: { allow: { decision: 'allow' }, block: { decision: 'block', reason: 'nobody is here' } },
  PostToolUse: {
    ...EVERY,
    suppress: { suppressOutput: true },
    object: { decision: 'block', reason: `that was wrong, by ${SECRET}` },
    stop: { continue: false, stopReason: 'that was enough' },
  },
  PostToolUseFailure: EVERY,
  UserPromptSubmit: { ...EVERY, block: { decision: 'block', reason: 'no such requests' } },
  SessionStart: EVERY,
  SubagentStart: EVERY,
  Stop: { more: { decision: 'block', reason: 'go on' } },
  PreCompact: { ...EVERY, block: { decision: 'block', reason: 'all of it matters' } },
  Notification: {},
  SessionEnd: {},
  SubagentStop: {},
} as const satisfies Record<string, Answers>;
type Event = keyof typeof ANSWERS;

/** The plugins of an agent, of these two. */
export interface Guarding {
  permissions: boolean;
  hooks: boolean;
}

export class Guards implements Equipment {
  readonly #world: CheckedWorld;
  readonly #rules: Rules | undefined;
  readonly #hooked: readonly { event: Event; required: boolean; timeoutMs: number; matcher?: string }[];
  /** The shares of faults, and of answers with content. */
  readonly #fault: number;
  readonly #speaks: number;
  /** The host answers for a person. */
  readonly #answers: boolean;
  /** The latest answer of hooks for each call, by conversation and call. */
  readonly #latestAnswers = new Map<string, 'allow' | 'ask'>();
  /** The calls for which a required hook gave no answer in time. */
  readonly #unanswered = new Set<string>();
  /** The calls that a hook allowed in place of a person, and those that the host allowed, by tool and arguments. */
  readonly #allowed = new Set<string>();
  readonly #allowedByHost = new Set<string>();
  #plugin: Permissions | undefined;

  constructor(world: CheckedWorld, guarding: Guarding) {
    const { tape } = world;
    this.#world = world;
    this.#fault = tape.pick([0, 0.05, 0.3]);
    this.#speaks = tape.pick([0.03, 0.1, 0.4]);
    this.#answers = tape.next(2) === 1;
    this.#rules = guarding.permissions ? new Rules(world) : undefined;
    const drawn = (event: Event) => ({
      event,
      required: tape.next(2) === 0,
      timeoutMs: tape.pick([5_000, 300, 1_500]),
    });
    const others = (Object.keys(ANSWERS) as Event[]).filter(() => tape.next(2) === 0).map(drawn);
    const second = { ...drawn('PreToolUse'), matcher: 'note|pay|mcp__.*' };
    this.#hooked = guarding.hooks ? [drawn('PreToolUse'), second, ...others] : [];
  }

  parts(): Parts {
    const plugins: Plugin[] = [];
    if (this.#hooked.length > 0) plugins.push(this.#hooksPlugin());
    if (this.#rules) plugins.push(this.#permissions(this.#rules));
    return { plugins };
  }

  #hooksPlugin(): Plugin {
    const made: { [E in Event]?: Hook[] } = {};
    for (const [index, { event, required, timeoutMs, matcher }] of this.#hooked.entries()) {
      const run = (input: HookInput) => this.#runs(index, input);
      const list = made[event] ?? [];
      made[event] = list;
      list.push({ run, required, timeoutMs, ...(matcher !== undefined && { matcher }) });
    }
    return hooks(made);
  }

  async #runs(index: number, { conversationId, callId = '' }: HookInput): Promise<HookOutput | undefined> {
    const world = this.#world;
    const hook = this.#hooked[index];
    if (!hook) return undefined;
    const { event, timeoutMs, required } = hook;
    const key = callKey(conversationId, callId);
    const since = world.elapsedMs;
    if (event === 'PreToolUse' && index === 0) this.#forget(key);
    if (event === 'PreToolUse' && required) this.#unanswered.add(key);
    const { facts } = world;
    const ends = event === 'SessionEnd' || event === 'SubagentStop';
    if (ends) facts.closesUntilMs = Math.max(facts.closesUntilMs, since + timeoutMs);
    world.count(`hook-${event}`);
    const fault = world.fault('hook', this.#fault) ? world.tape.pick(FAULTS) : undefined;
    if (fault) world.count(`hook-${fault}`);
    if (fault === 'hangs') return new Promise(() => undefined);
    if (world.fault('hook-slow', 0.3)) await world.wait('plugin');
    // Exactly at its limit either side may be first, so the hook gives no answer then.
    if (world.elapsedMs - since === timeoutMs) return new Promise(() => undefined);
    if (fault === 'throws') throw new Error(`a hook broke with ${SECRET}`);
    if (fault === 'nonsense') return world.tape.pick(NONSENSE) as HookOutput;
    const answers: Answers = ANSWERS[event];
    const kinds = Object.keys(answers);
    const kind = kinds.length > 0 && world.fault('hook-speaks', this.#speaks) ? world.tape.pick(kinds) : undefined;
    const output = kind === undefined ? undefined : answers[kind];
    if (kind !== undefined) world.count(`hook-${event}-${kind}`);
    if (world.elapsedMs - since < timeoutMs) this.#learn(event, key, output, required);
    else world.count('hook-late');
    return output;
  }

  /** Clears the answers for a call that is judged again from the start. */
  #forget(key: string): void {
    const { facts } = this.#world;
    this.#latestAnswers.delete(key);
    this.#unanswered.delete(key);
    facts.hooked.delete(key);
    this.#allowed.delete(key);
    facts.blocked.delete(key);
  }

  #learn(event: Event, key: string, output: HookOutput | undefined, required: boolean): void {
    const { facts } = this.#world;
    const { decision, updatedInput } = output ?? {};
    if (event === 'PreToolUse') {
      if (required) this.#unanswered.delete(key);
      if (updatedInput !== undefined) facts.hooked.set(key, updatedInput);
      if (decision === 'ask' || (decision === 'allow' && this.#latestAnswers.get(key) !== 'ask'))
        this.#latestAnswers.set(key, decision);
    }
    if (event !== 'PreToolUse' && event !== 'PermissionRequest') return;
    if (decision === 'block' || output?.continue === false) facts.blocked.add(key);
    if (event === 'PermissionRequest' && decision === 'allow') this.#allowed.add(key);
  }

  #permissions(rules: Rules): Plugin {
    this.#plugin = permissions({
      mode: rules.mode,
      allow: rules.named('allow'),
      ask: rules.named('ask'),
      deny: rules.named('deny'),
      ...(this.#answers && { decide: (call) => this.#decides(call) }),
    });
    return this.#plugin;
  }

  /** The host receives no call id, so its permission applies to all calls with these arguments. */
  async #decides({ name, args }: { name: string; args: Json }): Promise<PermissionOutcome> {
    const world = this.#world;
    const since = world.elapsedMs;
    if (world.fault('decide-hangs', this.#fault / 2)) return new Promise(() => undefined);
    if (world.fault('decide-slow', 0.2)) await world.wait('plugin');
    if (world.elapsedMs - since === DECIDE_MS) return new Promise(() => undefined);
    if (world.fault('decide-throws', this.#fault / 2)) throw new Error(`the host broke with ${SECRET}`);
    const outcome = world.fault('decide-speaks', 0.5) ? world.tape.pick(['allow', 'deny'] as const) : 'ask';
    world.count(`decide-${outcome}`);
    if (outcome === 'allow' && world.elapsedMs - since < DECIDE_MS)
      this.#allowedByHost.add(JSON.stringify([name, args]));
    return outcome;
  }

  begins(beginning: Beginning): void {
    const world = this.#world;
    const { conversationId, callId, decision, name, args, traits } = beginning;
    // A fork continues copies of calls, which were judged under another id.
    if (world.facts.forks.has(conversationId)) return;
    const key = callKey(conversationId, callId);
    const isReplay = decision !== undefined;
    const hook = isReplay ? undefined : this.#latestAnswers.get(key);
    const isAsked = hook === 'ask' || (traits.needsApproval === true && !isReplay);
    const verdict = this.#rules?.verdict(beginning, hook, isReplay) ?? (isAsked ? 'ask' : 'allow');
    const isAnswered = isReplay || this.#allowed.has(key) || this.#allowedByHost.has(JSON.stringify([name, args]));
    world.reach('guards', `${verdict} ${isReplay ? 'decided' : isAnswered ? 'answered' : 'alone'}`);
    world.check(verdict !== 'deny', 'I38', () => `${callId} (${name}) runs though the rules deny it`);
    world.check(verdict !== 'ask' || isAnswered, 'I38', () => `${callId} (${name}) runs though nobody was asked`);
    const isMissing = this.#unanswered.has(key);
    world.check(!isMissing, 'I38', () => `${callId} (${name}) runs though a required hook has not answered`);
  }

  async crashed(): Promise<void> {
    this.#rules?.remembered.clear();
    this.#allowedByHost.clear();
  }

  /** Allows a waiting tool call, and all later calls of that tool. */
  act({ pending }: Conversation): void {
    const world = this.#world;
    const [first, ...others] = pending;
    const rules = this.#rules;
    if (!first || !rules || !this.#plugin) return;
    const { name, args } = world.tape.pick([first, ...others]);
    world.count('remember');
    void this.#plugin.remember(name, args, '/').then((saved) => {
      for (const rule of saved) rules.remembered.add(rule);
    });
  }
}
