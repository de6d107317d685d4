/**
 * Paths of every spelling for the file tools, under each list of rules. Allowed calls are performed. Invariant: a file
 * tool shows no hidden file and nothing outside, and changes no protected place and nothing beyond the rules for edits.
 */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Chance, chance } from '../../support/seededChance.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { volume } from '../../support/tier.ts';
import { callTool } from './grantedCalls.ts';
import { judgeOf } from './judging.ts';
import { HIDDEN, HISTORY, OUTSIDE, oraclePlace } from './oracleDirectory.ts';
import { RULE_SETS } from './ruleSets.ts';

const place = oraclePlace();
const makeLinks = (): void => {
  symlinkSync('inner', join(place.ws, 'twice'));
  symlinkSync('round', join(place.ws, 'round'));
  symlinkSync('../out/new', join(place.ws, 'dangling'));
  symlinkSync('.git', join(place.ws, 'g'));
  symlinkSync('made', join(place.ws, 'm'));
  writeFileSync(join(place.ws, 'made/caf\u00e9'), 'x\n');
};
beforeAll(() => vi.stubEnv('HOME', place.home));
afterAll(() => {
  vi.unstubAllEnvs();
  place.remove();
});

const PARTS = [
  ...[
    'secrets',
    'key',
    'sub',
    'deep',
    'src',
    '.env',
    'a.ts',
    'made',
    'x',
    'docs',
    '.git',
    'config',
    'hooks',
    '.envrc',
    '.bashrc',
  ],
  ...[
    'link',
    'secret',
    'inner',
    'twice',
    'round',
    'dangling',
    'g',
    'm',
    'outside.txt',
    '..',
    '..',
    '.',
    '',
    '~',
    'out',
    'home',
    '.ssh',
  ],
  ...[
    'id',
    'caf\u00e9',
    'cafe\u0301',
    'SECRETS',
    'Key',
    '.ENV',
    '.Git',
    '.git.',
    '.g\u200bit',
    'new',
    '*',
    '?ey',
    'k\u0065y ',
    'a\\b',
    'x\u0000',
  ],
  ...[
    '\u202ekey',
    'a\nb',
    'n'.repeat(300),
    'file:',
    '%2e%2e',
    '$HOME',
    '-n',
    '.husky',
    '.vscode',
    '.mcp.json',
    'package.json',
  ],
] as const;
const KNOWN = [
  ...[
    'secrets/key',
    'src/.env',
    'link/secret',
    '../out/secret',
    'inner/key',
    '~/.ssh/id',
    '.git/config',
    'made/x',
    'src/a.ts',
  ],
  ...[
    'outside.txt',
    'hooks/x',
    '.envrc',
    'link/../secret',
    'g/hooks/x',
    'm/../secrets/key',
    'made/new/x',
    'README.md',
    '.',
  ],
] as const;

function pathOf(by: Chance): string {
  const plain = by.odds(0.6) ? by.one(KNOWN) : Array.from({ length: 1 + by.below(4) }, () => by.one(PARTS)).join('/');
  switch (by.below(10)) {
    case 0:
      return `${place.ws}/${plain}`;
    case 1:
      return `./${plain}/`;
    case 2:
      return plain.replaceAll('/', '//');
    case 3:
      return plain.replaceAll('/', '/./');
    case 4:
      return `made/../${plain}`;
    case 5:
      return plain.toUpperCase();
    case 6:
      return plain.normalize('NFD');
    case 7:
      return `${place.home}/../ws/${plain}`;
    default:
      return plain;
  }
}

function callOf(by: Chance): readonly [name: string, args: object] {
  const path = pathOf(by);
  switch (by.below(6)) {
    case 0:
      return ['Read', { file_path: path }];
    case 1:
      return ['Ls', { path }];
    case 2:
      return [
        'Glob',
        { pattern: by.one(['**/*', '*', '.*', '**/.env', '../**', '{secrets,../out}/*', 'secrets/*', '/**']), path },
      ];
    case 3:
      return [
        'Grep',
        {
          pattern: by.one(['KEY', 'canary', '.']),
          path,
          ...(by.odds(0.3) && { include: by.one(['*', '.env', 'key', '../*']) }),
        },
      ];
    case 4:
      return ['Write', { file_path: path, content: 'written\n' }];
    default:
      return ['Edit', { file_path: path, old_string: by.one(['KEY', 'a', 'canary']), new_string: 'edited' }];
  }
}

describe('file tools', () => {
  it.each(RULE_SETS)(
    'they show and change only allowed files: $name',
    async ({ name: set, options, hides, writes }) => {
      place.anew();
      makeLinks();
      const judge = judgeOf(options);
      const by = chance(sourceSeed());
      let before = place.guarded();
      let ran = 0;
      for (let time = 0; time < volume.filePaths; time += 1) {
        const [name, args] = callOf(by);
        const what = `${time}: ${name} ${JSON.stringify(args)}`;
        const { outcome, grant } = await judge(name, { ...args }, place.ws);
        if (outcome !== 'allow') continue;
        ran += 1;
        // An existing file is changed only after it was read.
        if (name === 'Edit' || name === 'Write') {
          const reading = await judge('Read', { ...args }, place.ws);
          if (reading.outcome === 'allow')
            await callTool('Read', args, {
              cwd: place.ws,
              conversationId: set,
              ...(reading.grant && { grant: reading.grant }),
            });
        }
        const { text, code } = await callTool(name, args, {
          cwd: place.ws,
          conversationId: set,
          ...(grant && { grant }),
        });
        if (hides) expect(text, what).not.toContain(HIDDEN);
        if (hides) expect(text, what).not.toContain(HISTORY);
        if (options.mode !== 'bypass') expect(text, what).not.toContain(OUTSIDE);
        if (code === '' && (name === 'Edit' || name === 'Write')) {
          const now = place.guarded();
          // The mode bypass writes outside without approval. Protected places require approval even there.
          const protectedOnes = (all: Readonly<Record<string, string>>): string =>
            JSON.stringify(
              Object.entries(all).filter(([path]) => options.mode !== 'bypass' || path.startsWith(`${place.ws}/`)),
            );
          expect(protectedOnes(now), what).toBe(protectedOnes(before));
          expect(writes.length, what).toBeGreaterThan(0);
          before = now;
        }
      }
      expect(ran).toBeGreaterThan(0);
      place.anew();
    },
  );
});
