/**
 * One call held to the rules. Rule: pure but for looking up where paths lead; the same call, rules and files give the same
 * verdict on every machine, whatever its language.
 */

import { stat } from 'node:fs/promises';
import type { Json } from '../../machines/internal.ts';
import { isSpilled } from '../tools/coding/spilledOutput.ts';
import {
  isInsideRoot,
  type PathSubject,
  pathRule,
  pathSubject,
  protectedPlace,
  type Surroundings,
  surroundingsOf,
} from './pathRules.ts';
import { EDIT_TOOLS, READ_TOOLS, type Rule } from './rules.ts';
import { shellVerdict } from './shellVerdict.ts';
import { type Finding, findingOf, type JudgedVerdict, type RuleSet } from './verdict.ts';

export interface JudgedCall {
  name: string;
  args: Json;
  cwd: string;
  /** The tool says of itself that it changes nothing. */
  readOnly: boolean;
}

/** Longer paths lead nowhere, and a verdict should not echo them. */
const SHOWN_MAX = 500;

export async function verdictOf(call: JudgedCall, rules: RuleSet): Promise<JudgedVerdict> {
  const tool = call.name.toLowerCase();
  const around = await surroundingsOf(call.cwd);
  const args = fieldsOf(call.args);
  const verdict =
    tool === 'bash' && typeof args.command === 'string'
      ? await shellVerdict(args.command, rules, around)
      : READ_TOOLS.includes(tool) || EDIT_TOOLS.includes(tool)
        ? await fileVerdict(tool, args, rules, around)
        : toolVerdict(tool, args, call.readOnly, rules);
  // Nobody is asked in this mode.
  if (rules.mode === 'dontAsk' && verdict.outcome === 'ask') return { ...verdict, outcome: 'deny' };
  return verdict;
}

const fieldsOf = (args: Json): { readonly [key: string]: Json } =>
  typeof args === 'object' && args !== null && !Array.isArray(args) ? args : {};

async function fileVerdict(
  tool: string,
  args: { readonly [key: string]: Json },
  rules: RuleSet,
  around: Surroundings,
): Promise<JudgedVerdict> {
  const given = args.file_path ?? args.path ?? '.';
  const path = await pathSubject(typeof given === 'string' ? given : '\0', around.cwd);
  const reads = READ_TOOLS.includes(tool);
  const fits = (rule: Rule, strict: boolean): boolean => {
    if (!rule.covers(tool)) return false;
    return (
      rule.subject.kind === 'tool' ||
      (rule.subject.kind === 'path' && rule.subject.pattern.matches(path, around, strict))
    );
  };
  const isInside = isInsideRoot(path, around);
  // Grep passes over hidden files alone; of what else a rule hides below a directory it would show lines.
  const hides = ({ subject, covers }: Rule): boolean =>
    subject.kind === 'path' && covers('read') && subject.pattern.seesVisible;
  const mayShow = tool === 'grep' && [...rules.deny, ...rules.ask].some(hides) && (await isDirectory(path));
  const facts = {
    deny: rules.deny.filter((rule) => fits(rule, false)),
    ask: rules.ask.filter((rule) => fits(rule, false)),
    allow: rules.allow.filter((rule) => fits(rule, true)),
    guarded: reads ? undefined : protectedPlace(path, around, rules.protect),
    reads: reads && ((isInside && !mayShow) || (path.real !== undefined && isSpilled(path.real))),
    edits: !reads && isInside,
    save: pathRule(reads ? tool : 'edit', path, around),
  };
  const verdict = withPart(findingOf(facts, rules), `${tool} ${path.given.slice(0, SHOWN_MAX)}`);
  return isInside || path.real === undefined ? verdict : { ...verdict, outside: path.real };
}

const isDirectory = async ({ real }: PathSubject): Promise<boolean> =>
  real !== undefined && (await stat(real).catch(() => undefined))?.isDirectory() === true;

function toolVerdict(
  tool: string,
  args: { readonly [key: string]: Json },
  readOnly: boolean,
  rules: RuleSet,
): JudgedVerdict {
  const agents = agentsIn(args);
  const names = (rule: Rule, every: boolean): boolean => {
    if (!rule.covers(tool)) return false;
    const { subject } = rule;
    if (subject.kind === 'tool') return true;
    if (subject.kind !== 'agent' || agents.length === 0) return false;
    const matches = (agent: string): boolean => subject.pattern.matches(agent);
    return every ? agents.every(matches) : agents.some(matches);
  };
  const facts = {
    deny: rules.deny.filter((rule) => names(rule, false)),
    ask: rules.ask.filter((rule) => names(rule, false)),
    allow: rules.allow.filter((rule) => names(rule, true)),
    reads: readOnly,
    save: tool,
  };
  return withPart(findingOf(facts, rules), tool);
}

/** The sub-agents that a call would start. */
function agentsIn({ tasks }: { readonly [key: string]: Json }): string[] {
  if (!Array.isArray(tasks)) return [];
  return tasks.flatMap((task) => {
    const { id } = fieldsOf(task);
    return typeof id === 'string' ? [id] : [];
  });
}

function withPart(finding: Finding, text: string): JudgedVerdict {
  const { outcome, by, save } = finding;
  return { ...finding, parts: [{ text, outcome, by }], saves: save === undefined ? [] : [save] };
}
