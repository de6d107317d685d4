/**
 * The permissions plugin decides which calls run unasked, which need an answer and which never run. Rule: layers are
 * combined, and an untrusted layer can only make the rules stricter. `ignored` lists the rules of untrusted layers that are ignored.
 */
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { Json } from '../../machines/internal.ts';
import { ConfigurationError, thrownText } from '../errors.ts';
import {
  CALL_CHECKS,
  type CallChecks,
  type CheckedCall,
  type ChecksCalls,
  type HookVerdict,
  type RequestVerdict,
  type RuleVerdict,
} from '../plugins/callChecks.ts';
import { PHASE_MS, type Plugin } from '../plugins/plugin.ts';
import { within } from '../timeLimit.ts';
import { exitPlanModeTool } from '../tools/coding/plan/exitPlanMode.ts';
import { sandboxStatus } from '../tools/coding/sandbox.ts';
import type { Confinement, NetworkChoice, Tool } from '../tools/tool.ts';
import { callback, checkOptionsOf, choice, flag, list, nonEmptyText, object, strings } from '../validation.ts';
import { type CallVerdicts, type JudgedCall, READS_ONLY, verdictsOf } from './evaluate.ts';
import { type HiddenPlaces, hiddenPaths } from './hiding/hiddenPaths.ts';
import { type PathPattern, pathPatterns, surroundingsOf } from './pathRules.ts';
import { widerRule } from './readings/widerRules.ts';
import { parseRule, parseRules, READ_TOOLS, type Rule } from './rules.ts';
import {
  type JudgedVerdict,
  PERMISSION_MODES,
  type PermissionMode,
  type PermissionOutcome,
  type PermissionVerdict,
  type RuleSet,
} from './verdict.ts';

/** Lists of permission rules. */
export interface PermissionRules {
  /** Calls that run without a question. */
  allow?: string[];
  /** Calls that wait for a person. */
  ask?: string[];
  /** Calls that never run. They win over `allow` and `ask`. */
  deny?: string[];
  /** Names of tools that nobody may use. */
  disabledTools?: string[];
}

/** Rules of one origin, for example of a project. */
export interface PermissionLayer extends PermissionRules {
  /** The origin of the layer, for messages. */
  name: string;
  /** If false or absent, only `ask`, `deny` and `disabledTools` of the layer count. */
  trusted?: boolean;
}

/** The options of `permissions`. */
export interface PermissionOptions extends PermissionRules {
  /** The decision about calls that no rule matches. Default: `default`. */
  mode?: PermissionMode;
  /** More rules, for example those of a user or a project. */
  layers?: PermissionLayer[];
  /** More paths that no rule opens, as patterns like those of `edit(…)`. */
  protect?: string[];
  /**
   * Answers in place of a person when the rules ask. If it throws or takes longer than 30 s, it counts as no answer.
   */
  decide?(call: { name: string; args: Json }): PermissionOutcome | Promise<PermissionOutcome>;
}

/** The plugin that `permissions` makes. */
export type Permissions = Plugin & {
  readonly mode: PermissionMode;
  /** Changes the mode of all conversations for the calls that are judged from now on. Throws ConfigurationError for an unknown mode. */
  setMode(mode: PermissionMode): void;
  /** The mode in a conversation: after `endPlan`, `default` instead of `plan`. Its sub-agents have the same mode. */
  modeOf(conversationId: string): PermissionMode;
  /** Ends plan mode in a conversation, until the process ends. Does nothing in another mode. */
  endPlan(conversationId: string): void;
  /** The tool ExitPlanMode, for the `tools` of an agent in mode `plan`: a person approves the plan, which ends the mode. */
  exitPlanMode(): Tool;
  /** The rules of untrusted layers that do not count. */
  readonly ignored: readonly string[];
  explain(toolName: string, args: Json, cwd: string): Promise<PermissionVerdict>;
  /**
   * Saves the rules that "always allow" needs for this call; they apply from now on. Empty if no rule would allow the
   * call. `rules`: rules that `widened()` returned, instead of the literal ones.
   */
  remember(toolName: string, args: Json, cwd: string, rules?: readonly string[]): Promise<string[]>;
  /**
   * Wider rules that would allow this call and others like it, such as `bash(npm run build *)` or `edit(./src/**)`. Empty if
   * there are none.
   */
  widened(toolName: string, args: Json, cwd: string): Promise<string[]>;
};

const ruleFields = { allow: strings, ask: strings, deny: strings, disabledTools: strings };
const modeValidator = object({ mode: choice(...PERMISSION_MODES) });
const layerValidator = object({ name: nonEmptyText, trusted: flag, ...ruleFields });
const optionsValidator = object({
  mode: choice(...PERMISSION_MODES),
  layers: list('layers { name, trusted, allow, ask, deny, disabledTools }'),
  protect: strings,
  decide: callback,
  ...ruleFields,
});

/**
 * Makes a plugin that decides by rules which calls run, wait or are denied. Throws a ConfigurationError that names a
 * misspelt rule.
 */
export function permissions(options: PermissionOptions = {}): Permissions {
  checkOptionsOf('permissions', options, optionsValidator);
  for (const layer of options.layers ?? []) checkOptionsOf('permissions, a layer', layer, layerValidator);
  // Copies own options only, so that inherited properties are not read as options.
  return new PermissionsPlugin(Object.assign(Object.create(null), options));
}

/** Copies of the layers, each with a name of its own: one without a name, or with the name of another, has its number. */
function named(layers: readonly PermissionLayer[]): PermissionLayer[] {
  const names = [SESSION, ...layers.map(({ name }) => name)];
  return layers.map((layer, at) => {
    const isOwn = layer.name !== undefined && names.filter((name) => name === layer.name).length === 1;
    const name = isOwn ? layer.name : [`layers[${at}]`, layer.name].filter(Boolean).join(' ');
    return Object.assign(Object.create(null), layer, { name });
  });
}

/** Named as the source of a question or a denial if the sandbox cannot hide every file that a rule names. */
const ASKED_UNHIDDEN = 'sandbox: too many files to hide those of the ask rules';
const DENIED_UNHIDDEN =
  'sandbox: too many files to hide those of the deny rules; a rule that names a directory, such as read(./src/**/.env), ' +
  'needs a smaller search, and a person may decide about a call with unsandboxed: true';

/** The name of the layer that "always allow" adds to. */
const SESSION = 'session';

class PermissionsPlugin implements Plugin, ChecksCalls {
  readonly name = 'permissions';
  readonly ignored: readonly string[];
  #rules: Omit<RuleSet, 'allow'>;
  readonly #allow: Rule[];
  readonly #disabled: ReadonlySet<string>;
  readonly #decide: PermissionOptions['decide'];
  /** Names of called tools that declare that they change nothing. */
  readonly #readOnly = new Set<string>(READ_TOOLS);
  /** Names of tools that start sub-agents: the default name, and those of calls. */
  readonly #spawning = new Set<string>(['spawn_agents']);
  /** Conversations whose plan was approved. */
  readonly #planned = new Set<string>();
  #hasReportedIgnored = false;

  constructor({ mode = 'default', layers: layerOptions = [], protect = [], decide, ...rules }: PermissionOptions) {
    const own: PermissionRules = Object.assign(Object.create(null), rules);
    const layers = named(layerOptions);
    const trusted = [own, ...layers.filter((layer) => layer.trusted === true)];
    const all = [own, ...layers];
    this.ignored = layers.flatMap(({ trusted, allow = [], name }) =>
      trusted === true ? [] : allow.map((rule) => `${name}: ${parseRule(rule)[0]?.text}`),
    );
    const rulesOf = (what: 'allow' | 'ask' | 'deny', from: readonly (PermissionRules | PermissionLayer)[]): Rule[] =>
      from.flatMap((layer) => parseRules(what, layer[what], 'name' in layer ? layer.name : undefined));
    this.#allow = rulesOf('allow', trusted);
    const deny = rulesOf('deny', all);
    const ask = rulesOf('ask', all);
    this.#rules = { mode, deny, ask, protect: protect.flatMap(protectedPatterns) };
    this.#disabled = new Set(all.flatMap(({ disabledTools = [] }) => disabledTools.map((tool) => tool.toLowerCase())));
    this.#decide = decide;
  }

  get mode(): PermissionMode {
    return this.#rules.mode;
  }

  readonly setMode = (mode: PermissionMode): void => {
    checkOptionsOf('setMode', { mode }, modeValidator);
    this.#rules = { ...this.#rules, mode };
    this.#planned.clear();
  };

  /** Its presence makes every call pass the permission gate; `CALL_CHECKS` makes the decision. */
  readonly beforeToolExecute = (): void => undefined;

  readonly modeOf = (conversationId: string): PermissionMode => this.#modeAfter(this.#planned.has(conversationId));

  #modeAfter(isPlanApproved: boolean): PermissionMode {
    return this.mode === 'plan' && isPlanApproved ? 'default' : this.mode;
  }

  /** The mode in which rules are saved: only a conversation whose plan was approved asks about changes. */
  get #saving(): Pick<RuleSet, 'mode'> {
    return { mode: this.#modeAfter(this.#planned.size > 0) };
  }

  readonly endPlan = (conversationId: string): void => void this.#planned.add(conversationId);

  readonly exitPlanMode = (): Tool => exitPlanModeTool(this);

  readonly explain = async (toolName: string, args: Json, cwd: string): Promise<PermissionVerdict> => {
    const { plain: judged, sandboxed } = await this.#judge({ name: toolName, args, cwd: resolve(cwd) });
    const { outcome, by, layer, matched, parts } = judged;
    const plain = { outcome, by, ...(layer !== undefined && { layer }), matched, parts };
    if (toolName.toLowerCase() !== 'bash' || sandboxStatus().kind === 'none') return plain;
    const inside = sandboxed('ask');
    return { ...plain, sandboxed: { outcome: inside.outcome, by: inside.by } };
  };

  readonly remember = async (
    toolName: string,
    args: Json,
    cwd: string,
    rules?: readonly string[],
  ): Promise<string[]> => {
    const { outcome, saves } = (await this.#judge({ name: toolName, args, cwd: resolve(cwd) }, this.#saving)).plain;
    if (outcome !== 'ask') return [];
    const saved = rules && String(rules) === String(await this.widened(toolName, args, cwd)) ? rules : saves;
    this.#allow.push(...parseRules('allow', saved, SESSION));
    return [...saved];
  };

  readonly widened = async (toolName: string, args: Json, cwd: string): Promise<string[]> => {
    const call = { name: toolName, args, cwd: resolve(cwd) };
    const { outcome, saves } = (await this.#judge(call, this.#saving)).plain;
    const rules = [...new Set(saves.map((rule) => widerRule(rule, homedir()) ?? rule))];
    if (outcome !== 'ask' || rules.every((rule) => saves.includes(rule))) return [];
    const allow = [...this.#allow, ...parseRules('allow', rules, SESSION)];
    return (await this.#judge(call, this.#saving, allow)).plain.outcome === 'allow' ? rules : [];
  };

  readonly [CALL_CHECKS]: CallChecks = {
    permit: (call, hook) => this.#permit(call, hook),
    requested: (call) => this.#requested(call),
  };

  #judge(
    { name, args, cwd, readOnly, spawns }: JudgeCall,
    decisions: Partial<Pick<RuleSet, 'mode' | 'hook' | 'needsApproval'>> = {},
    allow: readonly Rule[] = this.#allow,
  ): Promise<CallVerdicts> {
    const tool = name.toLowerCase();
    if (this.#disabled.has(tool)) {
      const by = `disabled ${name}`;
      const part = { text: tool, outcome: 'deny' as const, by };
      const plain: JudgedVerdict = { outcome: 'deny', by, matched: [], parts: [part], saves: [] };
      return Promise.resolve({ plain, sandboxed: () => plain });
    }
    const traits = { readOnly: readOnly ?? this.#readOnly.has(tool), spawns: spawns ?? this.#spawning.has(tool) };
    const call = { name, args, cwd, ...traits };
    return verdictsOf(call, { ...this.#rules, allow, ...decisions });
  }

  async #permit(call: CheckedCall, hook: HookVerdict['decision']): Promise<RuleVerdict> {
    if (!this.#hasReportedIgnored && this.ignored.length > 0) {
      call.diagnose('permission_rules_ignored', { rules: [...this.ignored] });
    }
    this.#hasReportedIgnored = true;
    if (call.readOnly) this.#readOnly.add(call.name.toLowerCase());
    if (call.spawns) this.#spawning.add(call.name.toLowerCase());
    const { needsApproval, conversationId, parentId = conversationId } = call;
    const mode = this.#modeAfter([conversationId, parentId].some((id) => this.#planned.has(id)));
    const verdicts = await this.#judge(call, { mode, hook, needsApproval });
    const judged = call.sandbox ? verdicts.sandboxed(call.sandbox) : verdicts.plain;
    const confined = call.sandbox && (await this.#confined(call, call.sandbox, judged, mode));
    const { outcome, by, parts, saves, place, isOutside } = confined?.judged ?? judged;
    const confinement = confined?.confinement;
    const grant = {
      ...(place !== undefined && { place }),
      ...(isOutside && place !== undefined && { outside: place }),
      ...(confinement !== undefined && { confinement }),
    };
    const runs = confinement && placeWords(confinement);
    const shown = { ...(place !== undefined && { place }), ...(runs !== undefined && { runs }) };
    return { outcome, by, payload: { by, parts, rules: [...saves], ...shown }, grant };
  }

  /**
   * The confinement of a command, with the verdict. If there are too many files to hide them all, a command that reads
   * unasked in the sandbox only is asked about, and no command runs while files of deny rules are visible.
   */
  async #confined(call: CheckedCall, choice: NetworkChoice, judged: JudgedVerdict, mode: PermissionMode) {
    const { outcome, by, confined = false, parts } = judged;
    const { network, unsandboxed } = call.args as { network?: Json; unsandboxed?: Json };
    if (unsandboxed === true) return { judged, confinement: 'none' as const };
    const rights = {
      network: choice === 'allow' || (choice === 'ask' && network === true),
      opensProtected: parts.some((part) => part.by.startsWith('protected ')),
      makesRepository: parts.some(({ text }) => /^git (init|clone)\b/.test(text)),
    };
    const { deny, ask } = this.#rules;
    let allowed = judged;
    if (outcome === 'allow' && (confined || this.#onlyReadsInside(parts))) {
      const hidden = await this.#hiddenFrom(call, [...deny, ...ask]);
      // The rules have judged every file that a command names which reads without a sandbox too.
      const places = hidden ?? (by === 'read-only' ? { hide: [], hold: [] } : undefined);
      if (places) return { judged, confinement: { writes: false, ...places, ...rights } };
      const question = mode === 'dontAsk' || mode === 'plan' ? ('deny' as const) : ('ask' as const);
      if (by === READS_ONLY) allowed = { ...judged, outcome: question, by: ASKED_UNHIDDEN, saves: [] };
    }
    const places = await this.#hiddenFrom(call, deny);
    if (places) return { judged: allowed, confinement: { writes: true, ...places, ...rights } };
    return {
      judged: outcome === 'deny' ? judged : { ...judged, outcome: 'deny' as const, by: DENIED_UNHIDDEN, saves: [] },
    };
  }

  async #hiddenFrom({ cwd }: CheckedCall, rules: readonly Rule[]): Promise<HiddenPlaces | undefined> {
    const patterns = rules.flatMap(({ subject, covers }) =>
      subject.kind === 'path' && covers('read') ? [subject.pattern] : [],
    );
    return hiddenPaths(patterns, await surroundingsOf(cwd));
  }

  /**
   * True if the command was allowed only because it reads inside the working directory. The sandbox then hides
   * everything outside, except a git repository that lies elsewhere.
   */
  #onlyReadsInside(parts: JudgedVerdict['parts']): boolean {
    const opensMore = this.#allow.some(({ subject, covers }) => subject.kind !== 'command' && covers('read'));
    return !opensMore && parts.every(({ by, text }) => by === 'read-only' && !/\bgit\b/.test(text));
  }

  async #requested(call: CheckedCall): Promise<RequestVerdict | undefined> {
    const decide = this.#decide;
    if (!decide) return undefined;
    const { name, args, setTimer, signal } = call;
    try {
      const answer = await within(PHASE_MS, { setTimer, signal }, () => decide({ name, args }));
      if (answer === 'allow') return { decision: 'allow', by: 'decide' };
      if (answer === 'deny') return { decision: 'deny', reason: 'decide' };
    } catch (error) {
      if (signal.aborted) throw error;
      call.diagnose('permission_decide_error', { tool: name, message: thrownText(error) });
    }
    return undefined;
  }
}

type JudgeCall = Pick<JudgedCall, 'name' | 'args' | 'cwd'> & Partial<JudgedCall>;

/** Describes the place of the command's execution, for the person who decides. */
function placeWords(confinement: Confinement | 'none'): string {
  if (confinement === 'none') return 'outside the sandbox';
  const { writes, network, opensProtected } = confinement;
  const reach = network ? ', with the network' : ', without the network';
  const guarded = opensProtected ? ', protected places too' : '';
  return `in the sandbox, ${writes ? `changing the working directory${guarded}` : 'reading only'}${reach}`;
}

function protectedPatterns(spec: string): readonly PathPattern[] {
  const patterns = pathPatterns(spec);
  if (typeof patterns === 'string') throw new ConfigurationError(`protect: ${JSON.stringify(spec)} ${patterns}`);
  return patterns;
}
