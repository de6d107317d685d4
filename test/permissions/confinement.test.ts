/**
 * The way a command runs in the sandbox, according to the host and the rules: its network access, and the files that
 * are empty. Judged without a sandbox, so that the tables apply on every machine.
 */
import { writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type PermissionOptions, permissions } from '../../src/node.ts';
import { PERMISSION_MODES } from '../../src/permissions/verdict.ts';
import { CALL_CHECKS, type ChecksCalls } from '../../src/plugins/callChecks.ts';
import type { Confinement, NetworkChoice } from '../../src/tools/tool.ts';
import { workspace } from './permissionWorkspace.ts';

const ws = await workspace();
beforeAll(async () => {
  for (const name of ['denied', 'asked']) {
    await mkdir(join(ws, name));
    await writeFile(join(ws, name, 'key'), 'CANARY');
  }
});

/** The verdict of the permissions on a sandboxed command, and the way it would run. */
async function judged(
  args: { command: string; network?: boolean; unsandboxed?: boolean },
  options: PermissionOptions,
  sandbox: NetworkChoice,
  cwd = ws,
) {
  const checks = (permissions(options) as ChecksCalls)[CALL_CHECKS];
  const verdict = await checks?.permit?.(
    {
      ...{ conversationId: 'c', runId: 'r', callId: 'c1', name: 'Bash', args, cwd, sandbox },
      ...{ readOnly: false, spawns: false, needsApproval: false, signal: new AbortController().signal },
      setTimer: () => () => undefined,
      diagnose: () => undefined,
    },
    undefined,
  );
  const confinement = verdict?.grant?.confinement as Confinement;
  return { outcome: verdict?.outcome, by: verdict?.by, confinement };
}

describe('a command that the rules allow, and the network', () => {
  const options = { allow: ['bash(npm ci)'] };
  const choices: readonly NetworkChoice[] = ['allow', 'ask', 'deny'];
  const cases = PERMISSION_MODES.filter((mode) => mode !== 'plan').flatMap((mode) =>
    choices.flatMap((choice) => [true, false].map((asks) => [mode, choice, asks] as const)),
  );

  it.each(cases)(
    'its outcome and its network access follow from mode %s, network %s and the request %j',
    async (mode, choice, asks) => {
      const args = { command: 'npm ci', ...(asks && { network: true }) };
      const { outcome, confinement } = await judged(args, { ...options, mode }, choice);
      const question = { allow: 'allow', ask: mode === 'dontAsk' ? 'deny' : 'ask', deny: 'deny' }[choice];
      expect(outcome).toBe(asks && mode !== 'bypass' ? question : 'allow');
      expect(confinement.network).toBe(choice === 'allow' || (choice === 'ask' && asks));
    },
  );
});

describe('files under a rule that denies, and under one that asks', () => {
  const options = { deny: ['read(./denied/**)'], ask: ['read(./asked/**)'] };

  it.each([
    // A read-only command never asks, so it finds neither.
    ['for f in *; do wc -l "$f"; done', 'allow', ['asked', 'denied']],
    // A person approves the other command, and may approve its questionable files with it.
    ['make', 'ask', ['denied']],
  ])('are hidden from %s: %s', async (command, outcome, hidden) => {
    const { outcome: found, confinement } = await judged({ command }, options, 'ask');
    expect(found).toBe(outcome);
    expect(confinement.hide.map((path) => path.slice(ws.length + 1).split('/')[0]).sort()).toEqual(hidden);
  });
});

describe('a directory with more files under a rule than the sandbox can hide', () => {
  const large = join(ws, '..', 'large');
  beforeAll(async () => {
    await mkdir(join(large, 'few'), { recursive: true });
    for (let at = 0; at <= 2_000; at += 1) writeFileSync(join(large, `${at}.key`), 'CANARY');
    writeFileSync(join(large, 'few/a.key'), 'CANARY');
  });
  const rules = { allow: ['bash(make)', 'bash(npm *)'], deny: ['read(*.key)'] };
  const inLarge = (command: string, options: PermissionOptions, more: object = {}) =>
    judged({ command, ...more }, options, 'ask', large);

  it.each([
    ['that a rule allows', 'make', rules],
    ['that the mode allows', 'make', { ...rules, mode: 'bypass' as const }],
    ['that a person would be asked about', 'cargo build', rules],
    ['that would read unasked in the sandbox', 'cat "$FILE"', rules],
    ['that reads, and that a rule allows', 'cat "$FILE"', { ...rules, allow: ['bash'] }],
  ])('a command %s is denied, with what to do', async (_, command, options) => {
    const { outcome, by, confinement } = await inLarge(command, options);
    expect([outcome, confinement]).toEqual(['deny', undefined]);
    expect(by).toContain('too many files to hide those of the deny rules');
    expect(by).toContain('read(./src/**/.env)');
    expect(by).toContain('unsandboxed: true');
  });

  it('a command whose files the rules have read in its words runs, and can only read', async () => {
    for (const command of ['ls', 'cat few/other']) {
      const { outcome, confinement } = await inLarge(command, rules);
      expect([command, outcome, confinement?.writes]).toEqual([command, 'allow', false]);
    }
    expect((await inLarge('cat 1.key', rules)).outcome).toBe('deny');
  });

  it('a person decides about a command outside of the sandbox', async () => {
    const { outcome, confinement } = await inLarge('make', rules, { unsandboxed: true });
    expect([outcome, confinement]).toEqual(['ask', 'none']);
  });

  it('a rule that names a directory hides its files there', async () => {
    const { outcome, confinement } = await inLarge('make', { ...rules, deny: ['read(./few/*.key)'] });
    expect([outcome, confinement?.hide]).toEqual(['allow', [join(large, 'few/a.key')]]);
  });

  it.each([
    ['default', 'ask'],
    ['bypass', 'ask'],
    ['dontAsk', 'deny'],
    ['plan', 'deny'],
  ] as const)(
    'in mode %s, a command that would read files of an ask rule has the outcome %s',
    async (mode, expected) => {
      const { outcome, by } = await inLarge('cat "$FILE"', { ask: ['read(*.key)'], mode });
      expect([outcome, by]).toEqual([expected, expect.stringContaining('those of the ask rules')]);
    },
  );

  it('a command that changes files and is allowed ignores the files of ask rules', async () => {
    const { outcome, confinement } = await inLarge('make', { allow: ['bash(make)'], ask: ['read(*.key)'] });
    expect([outcome, confinement?.hide]).toEqual(['allow', []]);
  });
});
