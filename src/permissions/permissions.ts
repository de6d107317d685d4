/**
 * The permissions plugin: which calls run unasked, which are asked about and which never run. Rule: layers only add up;
 * one that is not trusted can make the rules stricter and nothing else, and what was ignored of it is told.
 */
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
import { sandboxStatus } from '../tools/coding/sandbox.ts';
import type { Confinement, NetworkChoice } from '../tools/tool.ts';
import { callback, checkOptionsOf, choice, flag, list, nonEmptyText, object, strings } from '../validation.ts';
import { type CallVerdicts, type JudgedCall, READS_ONLY, verdictsOf } from './evaluate.ts';
import { hiddenPaths } from './hiddenPaths.ts';
import { type PathPattern, pathPattern, surroundingsOf } from './pathRules.ts';
import { parseRule, parseRules, READ_TOOLS, type Rule } from './rules.ts';
import {
  type JudgedVerdict,
  PERMISSION_MODES,
  type PermissionMode,
  type PermissionOutcome,
  type PermissionVerdict,
  type RuleSet,
} from './verdict.ts';

export interface PermissionRules {
  allow?: string[];
  ask?: string[];
  deny?: string[];
  /** Tools that nobody may use, by name. */
  disabledTools?: string[];
}

export interface PermissionLayer extends PermissionRules {
  /** Where it comes from, for messages. */
  name: string;
  /** Without it, only `ask`, `deny` and `disabledTools` count. */
  trusted?: boolean;
}

export interface PermissionOptions extends PermissionRules {
  mode?: PermissionMode;
  /** More rules, of a user or a project. */
  layers?: PermissionLayer[];
  /** Paths that no rule opens, besides those that are always protected: patterns like those of `edit(…)`. */
  protect?: string[];
  /** Answers for a person where the rules say ask. One that throws, or takes longer than 30 s, has said nothing. */
  decide?(call: { name: string; args: Json }): PermissionOutcome | Promise<PermissionOutcome>;
}

export type Permissions = Plugin & {
  readonly mode: PermissionMode;
  /** Rules of layers that are not trusted, which do not count. */
  readonly ignored: readonly string[];
  explain(toolName: string, args: Json, cwd: string): Promise<PermissionVerdict>;
  /** The rules that "always allow" saves for this call; they count from now on. Empty where no rule would be enough. */
  remember(toolName: string, args: Json, cwd: string): Promise<string[]>;
};

const ruleFields = { allow: strings, ask: strings, deny: strings, disabledTools: strings };
const layerValidator = object({ name: nonEmptyText, trusted: flag, ...ruleFields });
const optionsValidator = object({
  mode: choice(...PERMISSION_MODES),
  layers: list('layers { name, trusted, allow, ask, deny, disabledTools }'),
  protect: strings,
  decide: callback,
  ...ruleFields,
});

/** Throws ConfigurationError for a rule that is misspelt, and names it. */
export function permissions(options: PermissionOptions = {}): Permissions {
  checkOptionsOf('permissions', options, optionsValidator);
  for (const layer of options.layers ?? []) checkOptionsOf('permissions, a layer', layer, layerValidator);
  // Own options alone: what every object inherits is no option.
  return new PermissionsPlugin(Object.assign(Object.create(null), options));
}

/** The layer of what "always allow" adds. */
const SESSION = 'session';

class PermissionsPlugin implements Plugin, ChecksCalls {
  readonly name = 'permissions';
  readonly mode: PermissionMode;
  readonly ignored: readonly string[];
  readonly #rules: Omit<RuleSet, 'allow'>;
  readonly #allow: Rule[];
  readonly #disabled: ReadonlySet<string>;
  readonly #decide: PermissionOptions['decide'];
  /** Names of tools that said of themselves, when they were called, that they change nothing. */
  readonly #readOnly = new Set<string>(READ_TOOLS);
  #hasTold = false;

  constructor({ mode = 'default', layers: given = [], protect = [], decide, ...rules }: PermissionOptions) {
    const own: PermissionRules = Object.assign(Object.create(null), rules);
    const layers = given.map((layer): PermissionLayer => Object.assign(Object.create(null), layer));
    const trusted = [own, ...layers.filter((layer) => layer.trusted === true)];
    const all = [own, ...layers];
    this.mode = mode;
    this.ignored = layers.flatMap(({ trusted, allow = [], name }) =>
      trusted === true ? [] : allow.map((rule) => `${name}: ${parseRule(rule).text}`),
    );
    const rulesOf = (what: 'allow' | 'ask' | 'deny', from: readonly (PermissionRules | PermissionLayer)[]): Rule[] =>
      from.flatMap((layer) => parseRules(what, layer[what], 'name' in layer ? layer.name : undefined));
    this.#allow = rulesOf('allow', trusted);
    const deny = rulesOf('deny', all);
    const ask = rulesOf('ask', all);
    this.#rules = { mode, deny, ask, protect: protect.map(protectedPattern) };
    this.#disabled = new Set(all.flatMap(({ disabledTools = [] }) => disabledTools.map((tool) => tool.toLowerCase())));
    this.#decide = decide;
  }

  /** Every call passes the gate; what is said there is said by `CALL_CHECKS`. */
  readonly beforeToolExecute = (): void => undefined;

  readonly explain = async (toolName: string, args: Json, cwd: string): Promise<PermissionVerdict> => {
    const { plain: judged, sandboxed } = await this.#judge({ name: toolName, args, cwd: resolve(cwd) });
    const { outcome, by, layer, matched, parts } = judged;
    const plain = { outcome, by, ...(layer !== undefined && { layer }), matched, parts };
    if (toolName.toLowerCase() !== 'bash' || sandboxStatus().kind === 'none') return plain;
    const inside = sandboxed('ask');
    return { ...plain, sandboxed: { outcome: inside.outcome, by: inside.by } };
  };

  readonly remember = async (toolName: string, args: Json, cwd: string): Promise<string[]> => {
    const { outcome, saves } = (await this.#judge({ name: toolName, args, cwd: resolve(cwd) })).plain;
    if (outcome !== 'ask') return [];
    this.#allow.push(...parseRules('allow', saves, SESSION));
    return [...saves];
  };

  readonly [CALL_CHECKS]: CallChecks = {
    permit: (call, hook) => this.#permit(call, hook),
    requested: (call) => this.#requested(call),
  };

  #judge(
    { name, args, cwd, readOnly }: JudgeCall,
    said: Pick<RuleSet, 'hook' | 'needsApproval'> = {},
  ): Promise<CallVerdicts> {
    const tool = name.toLowerCase();
    if (this.#disabled.has(tool)) {
      const by = `disabled ${name}`;
      const part = { text: tool, outcome: 'deny' as const, by };
      const plain: JudgedVerdict = { outcome: 'deny', by, matched: [], parts: [part], saves: [] };
      return Promise.resolve({ plain, sandboxed: () => plain });
    }
    const call = { name, args, cwd, readOnly: readOnly ?? this.#readOnly.has(tool) };
    return verdictsOf(call, { ...this.#rules, allow: this.#allow, ...said });
  }

  async #permit(call: CheckedCall, hook: HookVerdict['decision']): Promise<RuleVerdict> {
    if (!this.#hasTold && this.ignored.length > 0) {
      call.diagnose('permission_rules_ignored', { rules: [...this.ignored] });
    }
    this.#hasTold = true;
    if (call.readOnly) this.#readOnly.add(call.name.toLowerCase());
    const { needsApproval } = call;
    const verdicts = await this.#judge(call, { hook, needsApproval });
    const judged = call.sandbox ? verdicts.sandboxed(call.sandbox) : verdicts.plain;
    const { by, parts, saves, place, isOutside } = judged;
    const confinement = call.sandbox && (await this.#confinement(call, call.sandbox, judged));
    // Where denied files cannot all be hidden, nothing runs because they are.
    const outcome = confinement === undefined && by === READS_ONLY ? 'ask' : judged.outcome;
    const grant = {
      ...(place !== undefined && { place }),
      ...(isOutside && place !== undefined && { outside: place }),
      ...(confinement !== undefined && { confinement }),
    };
    const runs = confinement && placeWords(confinement);
    const shown = { ...(place !== undefined && { place }), ...(runs !== undefined && { runs }) };
    return { outcome, by, payload: { by, parts, rules: [...saves], ...shown }, grant };
  }

  /** How a command runs if it may; undefined where the directory is too large to find what rules hide. */
  async #confinement(
    { args, cwd }: CheckedCall,
    choice: NetworkChoice,
    { outcome, confined = false, parts }: JudgedVerdict,
  ): Promise<Confinement | 'none' | undefined> {
    const { network, unsandboxed } = args as { network?: Json; unsandboxed?: Json };
    if (unsandboxed === true) return 'none';
    const { deny, ask } = this.#rules;
    const reads = outcome === 'allow' && (confined || this.#onlyReadsInside(parts));
    const patterns = (reads ? [...deny, ...ask] : deny).flatMap(({ subject, covers }) =>
      subject.kind === 'path' && covers('read') ? [subject.pattern] : [],
    );
    const hidden = await hiddenPaths(patterns, await surroundingsOf(cwd));
    if (hidden === undefined && reads) return undefined;
    return {
      ...{ writes: !reads, hide: hidden?.hide ?? [], hold: hidden?.hold ?? [] },
      network: choice === 'allow' || (choice === 'ask' && network === true),
      opensProtected: parts.some(({ by }) => by.startsWith('protected ')),
      makesRepository: parts.some(({ text }) => /^git (init|clone)\b/.test(text)),
    };
  }

  /** Nothing but reading inside allowed it: what was misread of it finds nothing outside. A repository may lie elsewhere. */
  #onlyReadsInside(parts: JudgedVerdict['parts']): boolean {
    const opensMore = this.#allow.some(({ subject, covers }) => subject.kind !== 'command' && covers('read'));
    return !opensMore && parts.every(({ by, text }) => by === 'read-only' && !/\bgit\b/.test(text));
  }

  async #requested(call: CheckedCall): Promise<RequestVerdict | undefined> {
    const decide = this.#decide;
    if (!decide) return undefined;
    const { name, args, setTimer, signal } = call;
    try {
      const said = await within(PHASE_MS, { setTimer, signal }, () => decide({ name, args }));
      if (said === 'allow') return { decision: 'allow', by: 'decide' };
      if (said === 'deny') return { decision: 'deny', reason: 'decide' };
    } catch (error) {
      if (signal.aborted) throw error;
      call.diagnose('permission_decide_error', { tool: name, message: thrownText(error) });
    }
    return undefined;
  }
}

type JudgeCall = Pick<JudgedCall, 'name' | 'args' | 'cwd'> & Partial<JudgedCall>;

/** For whoever decides. */
function placeWords(confinement: Confinement | 'none'): string {
  if (confinement === 'none') return 'outside the sandbox';
  const { writes, network, opensProtected } = confinement;
  const reach = network ? ', with the network' : ', without the network';
  const guarded = opensProtected ? ', protected places too' : '';
  return `in the sandbox, ${writes ? `changing the working directory${guarded}` : 'reading only'}${reach}`;
}

function protectedPattern(spec: string): PathPattern {
  const pattern = pathPattern(spec);
  if (typeof pattern === 'string') throw new ConfigurationError(`protect: ${JSON.stringify(spec)} ${pattern}`);
  return pattern;
}
