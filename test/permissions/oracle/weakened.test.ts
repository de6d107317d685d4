/**
 * The judge without one of its rules. Invariant: without a sandbox a line escapes, so the rule is necessary and these
 * tests detect its loss. In the sandbox nothing escapes, whatever the judge decides.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type permissions, sandboxStatus } from '../../../src/node.ts';
import { sampled, volume } from '../../support/tier.ts';
import { hostileRepositories } from './hostileRepositories.ts';
import { escapesAmong, judgeOf } from './judging.ts';
import { CREDENTIALS, HIDDEN, OUTSIDE, oraclePlace } from './oracleDirectory.ts';
import { RULE_SETS, shows } from './ruleSets.ts';
import { printed } from './sandboxRuns.ts';
import { hasStrace } from './straceLines.ts';

interface Weakening {
  id: string;
  edits: readonly (readonly [find: string, replace: string])[];
  lines: readonly string[];
  /** The name of a hostile repository. */
  repository?: string;
  /** The name of a tag for the hidden file of the history. */
  reference?: string;
  /** An additional file of the workspace. */
  file?: string;
}
const here = import.meta.dirname;
const { weakenings } = (await import(join(here, 'weakenings.mjs'))) as { weakenings: readonly Weakening[] };
const { bundlerPlugin, planted } = (await import(join(here, '../../defects/plantDefect.mjs'))) as {
  planted(edits: Weakening['edits']): Map<string, string>;
  bundlerPlugin(changed: Map<string, string>): object;
};
const { bundled } = (await import(join(here, '../../support/bundled.mjs'))) as {
  bundled(contents: string, resolveDir: string, plugins: object[]): Promise<{ permissions: typeof permissions }>;
};

const place = oraclePlace();
beforeAll(() => {
  vi.stubEnv('HOME', place.home);
});
afterAll(() => {
  vi.unstubAllEnvs();
  place.remove();
});

it('each weakening of the judge replaces a text that the sources contain exactly once', () => {
  expect(weakenings.map(({ edits }) => planted(edits).size)).not.toContain(0);
});

describe.runIf(hasStrace && sandboxStatus().kind === 'bubblewrap')('without the rule about', () => {
  it.each(sampled(weakenings, volume.weakeningOf))('$id, lines escape, but not from the sandbox', async (weakening) => {
    const { edits, lines, repository, reference, file } = weakening;
    place.anew();
    hostileRepositories(place)
      .find(({ name }) => name === repository)
      ?.change();
    if (reference) execFileSync('git', ['tag', reference, 'HEAD:secrets/key'], { cwd: place.ws });
    if (file) writeFileSync(join(place.ws, file), 'x\n');
    const source = "export { permissions } from '../../../src/permissions/permissions.ts';";
    const { permissions: make } = await bundled(source, here, [bundlerPlugin(planted(edits))]);
    const inside: string[] = [];
    const before = JSON.stringify(place.guarded());
    for (const { options } of RULE_SETS) {
      if (options.ask) continue;
      const judge = judgeOf(options, make);
      for (const command of lines) {
        const { outcome, grant } = await judge('Bash', { command }, place.ws, 'ask');
        const confinement = grant?.confinement;
        if (outcome !== 'allow' || confinement === undefined || confinement === 'none') continue;
        const [text = ''] = await printed(place, [command], confinement);
        const canaries = [CREDENTIALS, ...(options.deny ? [HIDDEN] : []), ...(confinement.writes ? [] : [OUTSIDE])];
        for (const canary of canaries) if (shows(text, canary)) inside.push(`${command}: shows ${canary}`);
        if (JSON.stringify(place.guarded()) !== before) inside.push(`${command}: changes a guarded place`);
      }
    }
    expect(inside).toEqual([]);
    expect(await escapesAmong(lines, RULE_SETS, place, { make })).not.toEqual([]);
  });
});
