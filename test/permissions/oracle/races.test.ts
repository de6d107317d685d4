/**
 * A link that changes between the judgement of a call and its run. Invariant: a file tool acts inside or fails, and a
 * command in the sandbox reads and writes nothing outside, whenever the link changes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { sandboxStatus } from '../../../src/node.ts';
import { chance } from '../../support/seededChance.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { volume } from '../../support/tier.ts';
import { callTool } from './grantedCalls.ts';
import { judgeOf } from './judging.ts';
import { OUTSIDE, oraclePlace } from './oracleDirectory.ts';

const place = oraclePlace();
const away = join(place.out, 'dir');
let before: unknown;
let stop = (): Promise<unknown> => Promise.resolve();
beforeAll(async () => {
  vi.stubEnv('HOME', place.home);
  mkdirSync(join(place.ws, 'sub/deep'), { recursive: true });
  for (const path of ['sub/secret', 'sub/deep/secret']) writeFileSync(join(place.ws, path), 'KEY=inside\n');
  mkdirSync(join(away, 'deep'));
  for (const path of ['only-outside', 'deep/only-outside', 'deep/secret'])
    writeFileSync(join(away, path), `${OUTSIDE}\n`);
  before = place.guarded();
  const swapper = spawn(process.execPath, [join(import.meta.dirname, 'swapper.mjs'), join(place.ws, 'sub'), away], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(swapper.stdout, 'data');
  stop = () => {
    swapper.kill();
    return swapper.exitCode === null && swapper.signalCode === null ? once(swapper, 'exit') : Promise.resolve();
  };
});
afterAll(async () => {
  await stop();
  vi.unstubAllEnvs();
  place.remove();
});

const CALLS: readonly [readonly [string, object], ...(readonly [string, object])[]] = [
  ['Read', { file_path: 'sub/secret' }],
  ['Read', { file_path: 'sub/deep/secret' }],
  ['Ls', { path: 'sub' }],
  ['Ls', { path: 'sub/deep' }],
  ['Glob', { pattern: '**/*' }],
  ['Glob', { pattern: '**/*', path: 'sub' }],
  ['Grep', { pattern: 'KEY' }],
  ['Grep', { pattern: 'KEY', path: 'sub' }],
  ['Grep', { pattern: 'KEY', path: 'sub/secret' }],
  ['Write', { file_path: 'sub/new/x', content: 'made' }],
  ['Write', { file_path: 'sub/made', content: 'made' }],
  ['Edit', { file_path: 'sub/secret', old_string: 'KEY=', new_string: 'KEY= ' }],
  ['Edit', { file_path: 'sub/deep/secret', old_string: 'inside', new_string: 'changed' }],
];
const COMMANDS = [
  ...[
    'cat sub/secret',
    'cat sub/*',
    'ls -la sub',
    'grep -r KEY sub',
    'cat "$(echo sub/secret)"',
    'cd sub && cat secret',
    'find sub',
  ],
  ...['for f in sub/*; do cat "$f"; done', 'cat < sub/secret', 'wc -l sub/secret; cat sub/deep/only-outside'],
] as const;
const WRITES = [
  'echo x > sub/new',
  'touch sub/new',
  'cp README.md sub/new',
  'mkdir sub/new',
  'rm -f sub/only-outside',
  'mv README.md sub/',
] as const;

describe('while a directory becomes a link and back', () => {
  const judge = judgeOf({
    allow: ['edit(./**)', 'bash(touch *)', 'bash(cp *)', 'bash(mkdir *)', 'bash(rm *)', 'bash(mv *)'],
  });

  it('file tools act inside, or fail', async () => {
    const by = chance(sourceSeed());
    const codes = new Set<string>();
    for (let time = 0; time < volume.racedCalls * CALLS.length; time += 1) {
      const [name, args] = by.one(CALLS);
      const { outcome, grant } = await judge(name, { ...args }, place.ws);
      if (outcome !== 'allow') continue;
      const { text, code } = await callTool(name, args, { cwd: place.ws, ...(grant && { grant }) });
      codes.add(code);
      expect(text, `${name} ${JSON.stringify(args)}`).not.toMatch(/canary-from-outside|only-outside/);
    }
    expect(place.guarded()).toEqual(before);
    // An unlisted code would be an unexpected failure.
    expect([...codes].filter((code) => !EXPECTED.includes(code))).toEqual([]);
  });

  it.runIf(sandboxStatus().kind === 'bubblewrap')(
    'commands in the sandbox read and write nothing outside',
    async () => {
      const by = chance(sourceSeed());
      for (let time = 0; time < volume.racedCalls; time += 1) {
        const command = time % 3 === 2 ? by.one(WRITES) : by.one(COMMANDS);
        const { outcome, grant } = await judge('Bash', { command }, place.ws, 'ask');
        // The read was judged to stay inside, or the word leads outside at this moment and nobody can be asked.
        if (outcome !== 'allow' || !grant) continue;
        const { text } = await callTool('Bash', { command }, { cwd: place.ws, grant });
        if (time % 3 !== 2) expect(text, command).not.toMatch(/canary-from-outside/);
      }
      expect(place.guarded()).toEqual(before);
    },
  );
});

const EXPECTED = [
  '',
  'moved',
  'outside_workspace',
  'not_found',
  'not_a_file',
  'not_a_directory',
  'unreadable',
  'stale_read',
  'not_read',
  'no_match',
  'timeout',
];
