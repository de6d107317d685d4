/**
 * Lines in the sandbox: those that run without approval, and the others as if a person had approved them. Invariant: a
 * line shows no hidden file and no credentials, changes nothing outside and no protected place, and leaves no file of
 * the sandbox on the disk. A read-only line that runs without approval shows nothing outside either.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { sandboxStatus } from '../../../src/node.ts';
import type { Confinement } from '../../../src/tools/tool.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { volume } from '../../support/tier.ts';
import { commandLine } from '../commandLines.ts';
import { attackLine } from './attackLines.ts';
import { type Counts, judgeOf, noCounts } from './judging.ts';
import { manualLine, shellLine } from './manualLines.ts';
import { CREDENTIALS, HIDDEN, OUTSIDE, oraclePlace } from './oracleDirectory.ts';
import { RULE_SETS, shows } from './ruleSets.ts';
import { printed } from './sandboxRuns.ts';

const place = oraclePlace();
const counts: Counts = noCounts();
beforeAll(() => {
  vi.stubEnv('HOME', place.home);
});
afterAll(() => {
  vi.unstubAllEnvs();
  place.remove();
  if (process.env.ORACLE_REPORT)
    writeFileSync(process.env.ORACLE_REPORT, `sandbox ${JSON.stringify(counts)}\n`, { flag: 'a' });
});

const TOGETHER = 10;

const GRAMMARS = [attackLine, commandLine, attackLine, (seed: number) => manualLine(seed, place), shellLine];
// A person who approves a line sees the files that a rule asks about.
const SETS = RULE_SETS.filter(({ options }) => options.deny !== undefined);

describe.runIf(sandboxStatus().kind === 'bubblewrap')('in the sandbox', () => {
  it.each(SETS)('lines that are not denied stay in it: $name', async ({ name, options }) => {
    const judge = judgeOf(options);
    const from = sourceSeed() * 10 + Number(process.env.ORACLE_SEED ?? 0);
    const groups = new Map<string, { lines: string[]; asked: boolean; confinement: Confinement }>();
    for (let seed = from; seed < from + volume.sandboxLines / 3; seed += 1) {
      const command = GRAMMARS[seed % GRAMMARS.length]?.(seed) ?? '';
      const { outcome, grant } = await judge('Bash', { command }, place.ws, 'ask');
      counts.judged += 1;
      counts[outcome] += 1;
      const confinement = grant?.confinement;
      if (outcome === 'deny' || confinement === undefined || confinement === 'none') continue;
      // An approval of a change to a protected place permits that change.
      if (confinement.opensProtected || confinement.makesRepository) continue;
      const key = JSON.stringify(confinement);
      const group = groups.get(key) ?? { lines: [], asked: outcome === 'ask', confinement };
      group.lines.push(command);
      groups.set(key, group);
    }
    const before = JSON.stringify(place.guarded());
    const escapes: string[] = [];
    for (const { lines, confinement } of groups.values())
      for (let at = 0; at < lines.length; at += TOGETHER) {
        const some = lines.slice(at, at + TOGETHER);
        const texts = await printed(place, some, confinement);
        counts.ran += texts.length;
        for (const [index, text] of texts.entries()) {
          const canaries = [HIDDEN, CREDENTIALS, ...(confinement.writes ? [] : [OUTSIDE])];
          for (const canary of canaries) if (shows(text, canary)) escapes.push(`${some[index]}: shows ${canary}`);
        }
        if (JSON.stringify(place.guarded()) !== before || existsSync(place.ran))
          escapes.push(`one of ${JSON.stringify(some)} changed ${changed(JSON.parse(before), place.guarded())}`);
        if (confinement.writes) place.anew();
      }
    expect(escapes, name).toEqual([]);
    expect(counts.ran).toBeGreaterThan(0);
  });
});

const changed = (before: Readonly<Record<string, string>>, now: Readonly<Record<string, string>>): string =>
  [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((path) => before[path] !== now[path]).join(', ');
