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
import { callback, checkOptionsOf, choice, flag, list, nonEmptyText, object, strings } from '../validation.ts';
import { verdictOf } from './evaluate.ts';
import { type PathPattern, pathPattern } from './pathRules.ts';
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
  return new PermissionsPlugin(options);
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

  constructor({ mode = 'default', layers = [], protect = [], decide, ...own }: PermissionOptions) {
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
    const judged = await this.#judge({ name: toolName, args, cwd: resolve(cwd) });
    const { outcome, by, layer, matched, parts } = judged;
    return { outcome, by, ...(layer !== undefined && { layer }), matched, parts };
  };

  readonly remember = async (toolName: string, args: Json, cwd: string): Promise<string[]> => {
    const { outcome, saves } = await this.#judge({ name: toolName, args, cwd: resolve(cwd) });
    if (outcome !== 'ask') return [];
    this.#allow.push(...parseRules('allow', saves, SESSION));
    return [...saves];
  };

  readonly [CALL_CHECKS]: CallChecks = {
    permit: (call, hook) => this.#permit(call, hook),
    requested: (call) => this.#requested(call),
  };

  #judge(
    { name, args, cwd, readOnly }: { name: string; args: Json; cwd: string; readOnly?: boolean },
    said: Pick<RuleSet, 'hook' | 'needsApproval'> = {},
  ): Promise<JudgedVerdict> {
    const tool = name.toLowerCase();
    if (this.#disabled.has(tool)) {
      const by = `disabled ${name}`;
      const part = { text: tool, outcome: 'deny' as const, by };
      return Promise.resolve({ outcome: 'deny', by, matched: [], parts: [part], saves: [] });
    }
    const call = { name, args, cwd, readOnly: readOnly ?? this.#readOnly.has(tool) };
    return verdictOf(call, { ...this.#rules, allow: this.#allow, ...said });
  }

  async #permit(call: CheckedCall, hook: HookVerdict['decision']): Promise<RuleVerdict> {
    if (!this.#hasTold && this.ignored.length > 0) {
      call.diagnose('permission_rules_ignored', { rules: [...this.ignored] });
    }
    this.#hasTold = true;
    if (call.readOnly) this.#readOnly.add(call.name.toLowerCase());
    const { needsApproval } = call;
    const { outcome, by, parts, saves, outside } = await this.#judge(call, { hook, needsApproval });
    return { outcome, by, payload: { by, parts, rules: [...saves] }, ...(outside !== undefined && { outside }) };
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

function protectedPattern(spec: string): PathPattern {
  const pattern = pathPattern(spec);
  if (typeof pattern === 'string') throw new ConfigurationError(`protect: ${JSON.stringify(spec)} ${pattern}`);
  return pattern;
}
