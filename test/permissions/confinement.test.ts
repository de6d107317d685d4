/**
 * The way a command runs in the sandbox, according to the host and the rules: its network access, and the files that
 * are empty. Judged without a sandbox, so that the tables apply on every machine.
 */
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
  args: { command: string; network?: boolean },
  options: PermissionOptions,
  sandbox: NetworkChoice,
) {
  const checks = (permissions(options) as ChecksCalls)[CALL_CHECKS];
  const verdict = await checks?.permit?.(
    {
      ...{ conversationId: 'c', runId: 'r', callId: 'c1', name: 'Bash', args, cwd: ws, sandbox },
      ...{ readOnly: false, spawns: false, needsApproval: false, signal: new AbortController().signal },
      setTimer: () => () => undefined,
      diagnose: () => undefined,
    },
    undefined,
  );
  const confinement = verdict?.grant?.confinement as Confinement;
  return { outcome: verdict?.outcome, confinement };
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
