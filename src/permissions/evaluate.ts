/**
 * Evaluates one tool call against the permission rules. Rule: the same call, rules and files give the same verdict on
 * every machine and in every locale. The only effect is reading where paths lead.
 */

import { stat } from 'node:fs/promises';
import type { Json } from '../../machines/internal.ts';
import { beginning } from '../printable.ts';
import { isSpilled } from '../tools/coding/spilledOutput.ts';
import { webAddress } from '../tools/coding/web/webFetch.ts';
import type { NetworkChoice } from '../tools/tool.ts';
import {
  isInsideRoot,
  type PathSubject,
  pathRule,
  pathSubject,
  protectedPlace,
  type Surroundings,
  surroundingsOf,
} from './pathRules.ts';
import { mayShow } from './patternReach.ts';
import { EDIT_TOOLS, hostName, isRule, READ_TOOLS, type Rule } from './rules.ts';
import { shellVerdict } from './shellVerdict.ts';
import { type Finding, findingOf, type JudgedVerdict, type RuleSet } from './verdict.ts';

export interface JudgedCall {
  name: string;
  args: Json;
  cwd: string;
  /** The tool declares that it changes nothing. */
  readOnly: boolean;
  /** The tool starts sub-agents. */
  spawns: boolean;
}

/** A longer path cannot exist, so the verdict shows only its beginning. */
const SHOWN_MAX = 500;

/** The verdict without a sandbox, and the verdict for a command that runs in one. */
export interface CallVerdicts {
  plain: JudgedVerdict;
  sandboxed(network: NetworkChoice): JudgedVerdict;
}

export async function verdictsOf(call: JudgedCall, rules: RuleSet): Promise<CallVerdicts> {
  const tool = call.name.toLowerCase();
  const args = fieldsOf(call.args);
  // Only tools that work on files need the file system.
  const judged =
    tool === 'bash' && typeof args.command === 'string'
      ? await shellVerdict(args.command, rules, await surroundingsOf(call.cwd))
      : READ_TOOLS.includes(tool) || EDIT_TOOLS.includes(tool)
        ? await fileVerdict(tool, args, rules, await surroundingsOf(call.cwd))
        : toolVerdict(call, args, rules);
  // A rule for a long or unusual name may be invalid.
  const verdict = judged.saves.every(isRule) ? judged : { ...judged, saves: [] };
  // The mode `dontAsk` denies every call that would need an answer.
  const withMode = (confined: JudgedVerdict): JudgedVerdict => {
    if (rules.mode === 'dontAsk' && confined.outcome === 'ask') return { ...confined, outcome: 'deny' };
    return confined;
  };
  return {
    plain: withMode(verdict),
    sandboxed: (network) => withMode(inSandbox(verdict, args, network, rules)),
  };
}

/** Named as the source of the permission if a command runs unasked because the sandbox confines it. */
export const READS_ONLY = 'sandbox: reads only';

/**
 * Applies the sandbox to a verdict: commands that only read run unasked, but the network and leaving the sandbox need
 * permission.
 */
function inSandbox(
  verdict: JudgedVerdict,
  { network, unsandboxed }: { readonly [key: string]: Json },
  choice: NetworkChoice,
  { mode }: RuleSet,
): JudgedVerdict {
  const isReading = verdict.confined === true && (verdict.outcome === 'ask' || verdict.by === 'mode plan');
  if (verdict.outcome === 'deny' && !isReading) return verdict;
  const question = (text: string, outcome: 'ask' | 'deny'): JudgedVerdict => ({
    ...verdict,
    ...{ outcome, by: text, saves: [], confined: false },
    parts: [...verdict.parts, { text, outcome, by: 'sandbox' }],
  });
  if (unsandboxed === true) return question('runs outside the sandbox', 'ask');
  if (network === true && choice !== 'allow' && mode !== 'bypass') return question('uses the network', choice);
  if (isReading) return { ...verdict, outcome: 'allow', by: READS_ONLY };
  return verdict;
}

/** Copies own fields only, so that inherited properties such as `constructor` are not read as arguments. */
const fieldsOf = (args: Json): { readonly [key: string]: Json } =>
  typeof args === 'object' && args !== null && !Array.isArray(args)
    ? Object.assign(Object.create(null), args)
    : Object.create(null);

async function fileVerdict(
  tool: string,
  args: { readonly [key: string]: Json },
  rules: RuleSet,
  around: Surroundings,
): Promise<JudgedVerdict> {
  const argument = args.file_path ?? args.path ?? '.';
  const path = await pathSubject(typeof argument === 'string' ? argument : '\0', around.cwd, around);
  const reads = READ_TOOLS.includes(tool);
  const fits = (rule: Rule, strict: boolean): boolean => {
    if (!rule.covers(tool)) return false;
    return (
      rule.subject.kind === 'tool' ||
      (rule.subject.kind === 'path' && rule.subject.pattern.matches(path, around, strict))
    );
  };
  const isInside = isInsideRoot(path, around);
  const hiding = tool === 'grep' ? await ruleHiddenBelow(path, rules, around) : undefined;
  const facts = {
    deny: rules.deny.filter((rule) => fits(rule, false)),
    ask: rules.ask.filter((rule) => fits(rule, false)),
    allow: rules.allow.filter((rule) => fits(rule, true)),
    guarded: reads ? undefined : protectedPlace(path, around, rules.protect),
    reads: reads && ((isInside && !hiding) || (path.real !== undefined && isSpilled(path.real))),
    edits: !reads && isInside,
    save: hiding ? undefined : pathRule(reads ? tool : 'edit', path, around),
  };
  const finding = findingOf(facts, rules);
  // An allow rule for a directory does not open files that another rule hides in it.
  const doubted: Finding =
    hiding && finding.outcome === 'allow'
      ? { ...finding, outcome: 'ask', by: `doubt: it may show files of ${hiding.text}`, save: undefined }
      : finding;
  const shown = beginning(path.written, SHOWN_MAX);
  const leads =
    path.real !== path.spelled || !isInside ? `${shown} leads to ${path.real ?? 'an unknown place'}` : undefined;
  const verdict = withPart(doubted, `${tool} ${shown}`, doubted.outcome === 'allow' ? undefined : leads);
  if (path.real === undefined) return verdict;
  return { ...verdict, place: path.real, isOutside: !isInside };
}

/** The first rule that hides files below a directory from a search. Grep itself skips names with a leading dot. */
async function ruleHiddenBelow(
  path: PathSubject,
  { deny, ask }: RuleSet,
  around: Surroundings,
): Promise<Rule | undefined> {
  const directory = path.real;
  if (directory === undefined || !(await isDirectory(path))) return undefined;
  for (const rule of [...deny, ...ask]) {
    const { subject } = rule;
    if (subject.kind !== 'path' || !rule.covers('read')) continue;
    if (await mayShow(subject.pattern, { directory, spelled: path.spelled, dotted: false, isNow: false }, around))
      return rule;
  }
  return undefined;
}

const isDirectory = async ({ real }: PathSubject): Promise<boolean> =>
  real !== undefined && (await stat(real).catch(() => undefined))?.isDirectory() === true;

function toolVerdict(
  { name: toolName, readOnly, spawns }: JudgedCall,
  args: { readonly [key: string]: Json },
  rules: RuleSet,
): JudgedVerdict {
  const tool = toolName.toLowerCase();
  const agents = agentsIn(args);
  // The program names the tool of an agent after it.
  const [, ownAgent] = /^agent_(.+)$/i.exec(toolName) ?? [];
  const host = tool === 'webfetch' ? hostIn(args) : undefined;
  const names = (rule: Rule, every: boolean): boolean => {
    if (!rule.covers(tool)) return false;
    const { subject } = rule;
    if (subject.kind === 'tool') return true;
    // An address without a readable host may lead to any host.
    if (subject.kind === 'domain') return host === undefined ? !every : subject.matches(host);
    if (subject.kind !== 'agent') return false;
    const matches = (agent: string): boolean => subject.pattern.matches(agent);
    if (ownAgent !== undefined && matches(ownAgent)) return true;
    // Another tool may have `tasks` among its arguments. Without sub-agents such a call needs no rule for agents.
    if (agents.length === 0 || (every && !spawns)) return false;
    return every ? agents.every(matches) : agents.some(matches);
  };
  const facts = {
    deny: rules.deny.filter((rule) => names(rule, false)),
    ask: rules.ask.filter((rule) => names(rule, false)),
    allow: rules.allow.filter((rule) => names(rule, true)),
    reads: readOnly,
    save: host === undefined ? tool : `${tool}(domain:${host})`,
  };
  return withPart(findingOf(facts, rules), host === undefined ? tool : `${tool} ${host}`);
}

/** The host that WebFetch would ask. */
function hostIn({ url }: { readonly [key: string]: Json }): string | undefined {
  const address = typeof url === 'string' ? webAddress(url) : undefined;
  return address === undefined || 'kind' in address ? undefined : hostName(address);
}

/** The ids of the sub-agents that a call would start. */
function agentsIn({ tasks }: { readonly [key: string]: Json }): string[] {
  if (!Array.isArray(tasks)) return [];
  return tasks.flatMap((task) => {
    const { id } = fieldsOf(task);
    return typeof id === 'string' ? [id] : [];
  });
}

function withPart(finding: Finding, text: string, why?: string): JudgedVerdict {
  const { outcome, by, save } = finding;
  const part = { text, outcome, by, ...(why !== undefined && { why }) };
  return { ...finding, parts: [part], saves: save === undefined ? [] : [save] };
}
