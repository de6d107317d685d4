/** The verdicts of the rules on a call, as an agent requests them, and the effects of allowed lines when they run. */
import type { Json } from '../../../src/index.ts';
import type { PermissionOptions } from '../../../src/node.ts';
import { permissions } from '../../../src/node.ts';
import { CALL_CHECKS, type CheckedCall, type ChecksCalls, type RuleVerdict } from '../../../src/plugins/callChecks.ts';
import type { OraclePlace } from './oracleDirectory.ts';
import { escapesOf, onlyReads, type RuleSetCase } from './ruleSets.ts';
import { traced } from './straceLines.ts';

export type Judge = (name: string, args: Json, cwd: string, sandbox?: 'ask') => Promise<RuleVerdict>;

/** `make`: creates the plugin, or a weakened one. */
export function judgeOf(options: PermissionOptions, make: typeof permissions = permissions): Judge {
  const checks = (make(options) as unknown as ChecksCalls)[CALL_CHECKS];
  return async (name, args, cwd, sandbox) => {
    const call: CheckedCall = {
      ...{ conversationId: 'c', runId: 'r', callId: 'c1', name, args, cwd, sandbox, needsApproval: false },
      ...{ readOnly: /^(read|ls|glob|grep)$/i.test(name), spawns: false, signal: new AbortController().signal },
      ...{ setTimer: () => () => undefined, diagnose: () => undefined },
    };
    const verdict = await checks?.permit?.(call, undefined);
    if (!verdict) throw new Error('the plugin judges no calls');
    return verdict;
  };
}

export interface Counts {
  judged: number;
  allow: number;
  ask: number;
  deny: number;
  ran: number;
}
export const noCounts = (): Counts => ({ judged: 0, allow: 0, ask: 0, deny: 0, ran: 0 });

interface EscapeOptions {
  counts?: Counts;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  make?: typeof permissions;
}

/** Lines of one process of strace. */
const TOGETHER = 100;

/**
 * Judges each line under each list of rules, runs the lines that are allowed under one, and returns their forbidden
 * acts.
 */
export async function escapesAmong(
  lines: readonly string[],
  sets: readonly RuleSetCase[],
  place: OraclePlace,
  { counts = noCounts(), env = {}, cwd = place.ws, make = permissions }: EscapeOptions = {},
): Promise<string[]> {
  const allowed = new Map<string, RuleSetCase[]>();
  for (const set of sets) {
    const judge = judgeOf(set.options, make);
    for (const command of new Set(lines)) {
      const { outcome } = await judge('Bash', { command }, cwd);
      counts.judged += 1;
      counts[outcome] += 1;
      if (outcome === 'allow') allowed.set(command, [...(allowed.get(command) ?? []), set]);
    }
  }
  const escapes: string[] = [];
  for (const reads of [true, false]) {
    const run = [...allowed].filter(([, by]) => by.some(onlyReads) === reads).map(([line]) => line);
    for (let at = 0; at < run.length; at += TOGETHER) {
      const found = await traced(run.slice(at, at + TOGETHER), {
        ...{ scratch: place.root, cwd, env: place.env({ LANG: 'C', ...env }) },
        ...(!reads && { anewCommand: place.anewCommand }),
      });
      counts.ran += found.length;
      for (const each of found) {
        const faults = new Map<string, string[]>();
        for (const set of allowed.get(each.line) ?? []) {
          const fault = escapesOf(each, set, place).join('; ');
          if (fault !== '') faults.set(fault, [...(faults.get(fault) ?? []), set.name]);
        }
        for (const [fault, names] of faults) escapes.push(`${each.line}: ${fault} [${names.join(', ')}]`);
      }
      if (!reads) place.anew();
    }
  }
  return escapes;
}
