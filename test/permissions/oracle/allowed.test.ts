/**
 * Lines that the rules allow without approval are run outside any sandbox, and traced. Invariant: none of them reads a
 * hidden file, opens or lists an outside path, starts an unnamed program, or writes beyond the rules for edits.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { volume } from '../../support/tier.ts';
import { commandLine } from '../commandLines.ts';
import { hostileRepositories, repositoryLines } from './hostileRepositories.ts';
import { type Counts, escapesAmong, noCounts } from './judging.ts';
import { manualLine, shellLine } from './manualLines.ts';
import { oraclePlace } from './oracleDirectory.ts';
import { RULE_SETS } from './ruleSets.ts';
import { hasStrace } from './straceLines.ts';

const place = oraclePlace();
const counts: Counts = noCounts();
beforeAll(() => {
  vi.stubEnv('HOME', place.home);
});
afterAll(() => {
  vi.unstubAllEnvs();
  place.remove();
  const file = process.env.ORACLE_REPORT;
  if (file) writeFileSync(file, `${JSON.stringify(counts)}\n`, { flag: 'a' });
});

const GRAMMARS = [
  { name: 'of the shell around usual commands', lineOf: commandLine },
  { name: 'from the manuals of programs', lineOf: (seed: number) => manualLine(seed, place) },
  { name: 'in which the shell itself is changed', lineOf: shellLine },
];
const LOCALES: readonly NodeJS.ProcessEnv[] = [{}, { LC_ALL: 'C' }, { LC_ALL: 'C.UTF-8' }];
const watched = hasStrace ? 'watched by strace and canaries' : 'watched by canaries alone, for strace is not installed';

describe(`lines that are allowed without approval, ${watched}`, () => {
  it.each(GRAMMARS)('they do nothing that their rules do not allow: lines $name', async ({ name, lineOf }) => {
    const from = sourceSeed() * 10 + Number(process.env.ORACLE_SEED ?? 0);
    // Of a small sample every line may need approval. The first one never does.
    const lines = ['ls', ...Array.from({ length: volume.oracleLines }, (_, at) => lineOf(from + at))];
    const env = LOCALES[from % LOCALES.length] ?? {};
    const before = JSON.stringify(place.guarded());
    const bounded = RULE_SETS.filter(({ opens }) => opens === undefined);
    expect(await escapesAmong(lines, bounded, place, { counts, env }), name).toEqual([]);
    place.anew();
    expect(JSON.stringify(place.guarded())).toBe(before);
    // Lists of rules that open every place may change outside files.
    const unbounded = RULE_SETS.filter(({ opens }) => opens !== undefined);
    expect(await escapesAmong(lines, unbounded, place, { counts, env }), name).toEqual([]);
    expect(counts.ran).toBeGreaterThan(0);
  });

  it.each(hostileRepositories(place).slice(0, volume.oracleRepositories))(
    'git lines do nothing else in a repository with $name',
    async (repository) => {
      place.anew();
      repository.change();
      const below = repository.below === undefined ? place.ws : join(place.ws, repository.below);
      // Each line that writes needs a new repository, so only read-only lists of rules are used.
      const sets = RULE_SETS.filter(({ writes }) => writes.length === 0);
      const lines = repositoryLines(volume.oracleLines);
      expect(await escapesAmong(lines, sets, place, { counts, cwd: below })).toEqual([]);
      place.anew();
    },
  );
});
