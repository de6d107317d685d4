/**
 * Options of listed programs that change the directory or name a file to run. Invariant: a pattern for such a program
 * means the project's own. A command that works outside the working directory, or runs a file from there, requires
 * approval.
 */
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { PermissionOptions } from '../../src/node.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
await mkdir(join(ws, 'inner'));
await symlink('../ws-evil', join(ws, 'away'));
const outcomes = (lines: readonly string[], options: PermissionOptions): Promise<string[][]> =>
  Promise.all(lines.map(async (line) => [line, (await explain(options, 'Bash', { command: line }, ws)).outcome]));
const each = (lines: readonly string[], outcome: string): string[][] => lines.map((line) => [line, outcome]);
const PROGRAMS =
  `make git npm pnpm yarn tar cargo go node python3 bash sh just gradle docker uv awk ruby mvn ninja cmake pytest
  vitest terraform env bun deno tsx`.split(/\s+/);
const allow = PROGRAMS.map((name) => `bash(${name} *)`);

it('it asks if a program would work outside, or run a file from there', async () => {
  const lines = [
    ...[
      'make -C ../ws-evil',
      'make -C../ws-evil',
      'make -kC ../ws-evil',
      'make --directory=../ws-evil',
      'make --dir ../ws-evil',
    ],
    ...[
      'make -f ../ws-evil/Makefile',
      'make --makefile=/etc/x',
      'make -C away',
      'make -C ~',
      'make -C inner/../..',
      'make -I .. all',
    ],
    ...['git -C ../ws-evil status', 'git --git-dir=../ws-evil log', 'npm --prefix ../ws-evil test', 'npm -C .. test'],
    ...[
      'pnpm -C .. install',
      'pnpm --dir .. build',
      'yarn --cwd ../ws-evil build',
      'tar -C .. -xf a.tar',
      'tar xfC a.tar ..',
    ],
    ...['tar -xf a.tar --directory=/tmp', 'tar -xf a.tar --dir /tmp', 'tar -xC/tmp -f a.tar'],
    ...[
      'cargo --manifest-path ../ws-evil/Cargo.toml build',
      'cargo build --manifest-path=../Cargo.toml',
      'go -C .. build',
    ],
    ...['go build -C .. ./x', 'go build -overlay=/tmp/o.json', 'node ../ws-evil/x.js', 'node -r /tmp/x.js a.js'],
    ...[
      'python3 /tmp/x.py',
      'python3 away/x.py',
      'bash ../ws-evil/x.sh',
      'sh ~/x.sh',
      'just -f ../justfile',
      'just -d ..',
    ],
    ...[
      'gradle -p .. build',
      'docker build -f ../Dockerfile .',
      'uv --directory .. sync',
      'awk -f ../x.awk a',
      'ruby ../x.rb',
    ],
    ...['mvn -f ../pom.xml test', 'ninja -C ..', 'cmake -S .. -B inner', 'pytest -c ../p.ini', 'vitest --root=..'],
    ...['terraform -chdir=.. plan', 'timeout 5 make -C ..', 'env -C .. make', "sh -c 'make -C ..'"],
    ...['cd inner && make -C ../..', 'make -C "$X"'],
    ...[
      'python3 -W ignore ../x.py',
      'ruby -r json ../x.rb',
      'bash -o posix ../ws-evil/x.sh',
      'node -r ./ok.js ../ws-evil/x.js',
      'node --conditions dev ../ws-evil/x.js',
      'bun run ../ws-evil/x.ts',
      'deno run -A ../ws-evil/x.ts',
      'tsx watch ../ws-evil/x.ts',
    ],
  ];
  expect(await outcomes(lines, { allow })).toEqual(each(lines, 'ask'));
});

it('it does not ask inside, nor if the whole tool, exactly this command, or a mode is allowed', async () => {
  const inside = [
    ...[
      'make -C inner',
      'make -Cinner all',
      'make -j4 --directory=inner',
      'make test',
      'make -f inner/Makefile',
      'tar -xf a.tar -C inner',
    ],
    ...[
      'tar xf a.tar',
      'node src/a.ts',
      'python3 inner/x.py --out /tmp/x',
      'python3 -W ignore inner/x.py /tmp/x',
      'node build.js ../out',
      'bun run build',
      'deno run src/a.ts ../out',
      'tsx watch src/a.ts',
      'cargo build --manifest-path inner/Cargo.toml',
      'go -C inner build',
    ],
    ...[
      'go test ./... -run TestX',
      'cargo test -p core',
      'bash inner/x.sh',
      'docker build -f inner/Dockerfile .',
      'vitest run src',
    ],
  ];
  expect(await outcomes(inside, { allow })).toEqual(each(inside, 'allow'));
  const outside = ['make -C ../ws-evil'];
  for (const options of [{ allow: ['bash(make -C ../ws-evil)'] }, { allow: ['bash'] }, { mode: 'bypass' }] as const)
    expect(await outcomes(outside, options as PermissionOptions)).toEqual(each(outside, 'allow'));
});
