/** The answers of the permissions plugin about a call: the verdict, the words for a person, and the confinement. */
import { writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../src/index.ts';
import { type PermissionOptions, permissions } from '../../src/node.ts';
import { CALL_CHECKS, type CheckedCall, type ChecksCalls } from '../../src/plugins/callChecks.ts';
import type { CallGrant, Confinement } from '../../src/tools/tool.ts';
import { explain, workspace } from './permissionWorkspace.ts';

const ws = await workspace();
const checksOf = (plugin: object) => {
  const checks = (plugin as ChecksCalls)[CALL_CHECKS];
  if (!checks?.permit || !checks.requested) throw new Error('the plugin judges no calls');
  return { permit: checks.permit, requested: checks.requested };
};
function callOf(name: string, args: Json, more: Partial<CheckedCall> = {}) {
  const diagnostics: [string, unknown][] = [];
  const call: CheckedCall = {
    ...{ conversationId: 'c', runId: 'r', callId: 'c1', name, args, cwd: ws, sandbox: undefined, needsApproval: false },
    ...{ readOnly: false, spawns: false, signal: new AbortController().signal, setTimer: () => () => undefined },
    diagnose: (code, detail) => void diagnostics.push([code, detail]),
    ...more,
  };
  return { call, diagnostics };
}
/** The verdict on a command that runs in a sandbox. */
const inSandbox = (args: { [key: string]: Json }, sandbox: CheckedCall['sandbox'], options: PermissionOptions = {}) =>
  checksOf(permissions(options)).permit(callOf('Bash', args, { sandbox }).call, undefined);

function confinementIn(grant: CallGrant | undefined): Confinement {
  const confinement = grant?.confinement;
  if (!confinement || confinement === 'none') throw new Error('the command is not confined');
  return confinement;
}

describe('the confinement of a command', () => {
  it.each([
    ['allow', undefined, true],
    ['allow', true, true],
    ['ask', undefined, false],
    ['ask', true, true],
    ['ask', 1, false],
    ['deny', true, false],
  ] as const)(
    'under the network choice %s, a request of %s gives the network: %s',
    async (choice, network, expected) => {
      const { grant } = await inSandbox({ command: 'make', ...(network !== undefined && { network }) }, choice);
      expect(confinementIn(grant).network).toBe(expected);
    },
  );

  it.each([
    ['git init', true],
    ['git clone x y', true],
    ['ls && git init sub', true],
    ['git status', false],
    ['legit init', false],
  ])('lets %s make a repository: %s', async (command, expected) => {
    const { grant } = await inSandbox({ command }, 'ask');
    expect(confinementIn(grant).makesRepository).toBe(expected);
  });

  it('opens protected places to a command that a person approves for one, and the payload names them', async () => {
    const opened = await inSandbox({ command: 'touch .git/x' }, 'ask');
    const other = await inSandbox({ command: 'touch x' }, 'ask');
    expect([opened, other].map(({ grant }) => confinementIn(grant).opensProtected)).toEqual([true, false]);
    expect([opened, other].map(({ payload }) => (payload as { runs: string }).runs)).toEqual([
      'in the sandbox, changing the working directory, protected places too, without the network',
      'in the sandbox, changing the working directory, without the network',
    ]);
    const wide = await inSandbox({ command: 'make', network: true }, 'ask');
    expect(wide.payload).toMatchObject({ runs: 'in the sandbox, changing the working directory, with the network' });
    const reads = await inSandbox({ command: 'ls | wc -l' }, 'ask');
    expect(reads.payload).toMatchObject({ runs: 'in the sandbox, reading only, without the network' });
  });

  it('leaves a command with the network to the rules where the network is free', async () => {
    const args = { command: 'make', network: true };
    expect(await inSandbox(args, 'allow')).toMatchObject({ outcome: 'ask', by: 'mode default' });
    expect(await inSandbox(args, 'ask')).toMatchObject({ outcome: 'ask', by: 'uses the network' });
    expect(await inSandbox(args, 'deny')).toMatchObject({ outcome: 'deny', by: 'uses the network' });
    expect(await inSandbox(args, 'ask', { mode: 'bypass' })).toMatchObject({ outcome: 'allow', by: 'mode bypass' });
  });

  it('lets a command read in mode plan too, and no other one run', async () => {
    const mode = 'plan';
    expect(await inSandbox({ command: 'cat $FILE' }, 'ask', { mode })).toMatchObject({ outcome: 'allow' });
    expect(await inSandbox({ command: 'make' }, 'ask', { mode })).toMatchObject({ outcome: 'deny', by: 'mode plan' });
  });

  it('is none outside the sandbox, for which `true` is required', async () => {
    const outside = await inSandbox({ command: 'ls', unsandboxed: true }, 'ask');
    expect(outside).toMatchObject({
      outcome: 'ask',
      by: 'runs outside the sandbox',
      payload: { runs: 'outside the sandbox' },
      grant: { confinement: 'none' },
    });
    const inside = await inSandbox({ command: 'ls', unsandboxed: 1 }, 'ask');
    expect(inside).toMatchObject({ outcome: 'allow', grant: { confinement: { writes: false } } });
  });

  it('hides the files of ask rules from commands that only read, and those of deny rules from all', async () => {
    await mkdir(join(ws, 'keys'), { recursive: true });
    for (const name of ['asked', 'denied']) await writeFile(join(ws, 'keys', name), '');
    const rules = { ask: ['read(./keys/asked)'], deny: ['read(./keys/denied)'] };
    const hidden = async (command: string): Promise<string[]> => {
      const { grant } = await inSandbox({ command }, 'ask', rules);
      return [...confinementIn(grant).hide].sort();
    };
    expect(await hidden('cat src/*')).toEqual([join(ws, 'keys/asked'), join(ws, 'keys/denied')]);
    expect(await hidden('make')).toEqual([join(ws, 'keys/denied')]);
  });
});

it('a command that reads in the sandbox is denied if there are more denied files than can be hidden', async () => {
  const many = join(ws, '..', 'many');
  await mkdir(many);
  const judged = async () => {
    const { call } = callOf('Bash', { command: 'cat $FILE' }, { sandbox: 'ask', cwd: many });
    return checksOf(permissions({ deny: ['read(*.key)'] })).permit(call, undefined);
  };
  for (let at = 0; at < 2_000; at += 1) writeFileSync(join(many, `${at}.key`), '');
  const most = await judged();
  expect([most.outcome, confinementIn(most.grant).hide.length]).toEqual(['allow', 2_000]);
  writeFileSync(join(many, 'one-more.key'), '');
  const more = await judged();
  expect([more.outcome, more.grant]).toEqual(['deny', {}]);
});

describe('the verdict on a call', () => {
  it('denies a disabled tool, whatever letters its name has in the rule and in the call', async () => {
    for (const [rule, tool] of [
      ['BASH', 'bash'],
      ['bash', 'Bash'],
      ['Deploy', 'deploy'],
    ] as const) {
      const { outcome, by, parts } = await explain({ disabledTools: [rule], allow: [tool] }, tool, {}, ws);
      expect([outcome, by, parts]).toEqual(['deny', `disabled ${tool}`, [{ text: tool.toLowerCase(), outcome, by }]]);
    }
  });

  it('is the same for a tool name in small letters, also inside of a sandbox', async () => {
    for (const [name, args] of [
      ['Bash', { command: 'make' }],
      ['Read', { file_path: '/nowhere' }],
      ['WebFetch', { url: 'https://a.test' }],
    ] as const)
      expect(await explain({}, name.toLowerCase(), args, ws)).toEqual(await explain({}, name, args, ws));
  });

  it('asks about a path that is no text, and grants no place', async () => {
    const { permit } = checksOf(permissions({ mode: 'acceptEdits' }));
    for (const file_path of [5, ['src/a.ts'], {}, `a\0`]) {
      const { outcome, grant } = await permit(callOf('Write', { file_path }).call, undefined);
      expect([outcome, grant]).toEqual(['ask', {}]);
    }
    const inside = await permit(callOf('Write', { file_path: 'src/a.ts', path: '/etc' }).call, undefined);
    expect([inside.outcome, inside.grant]).toEqual(['allow', { place: join(ws, 'src/a.ts') }]);
    const outside = await permit(callOf('Write', { file_path: '/nowhere/x' }).call, undefined);
    expect([outside.outcome, outside.grant]).toEqual(['ask', { place: '/nowhere/x', outside: '/nowhere/x' }]);
  });

  it.each([
    ['deny', ['a', 'b'], 'deny'],
    ['deny', ['b'], 'ask'],
    ['ask', ['b', 'a'], 'ask agent(a)'],
    ['allow', ['a', 'b'], 'ask'],
    ['allow', ['a'], 'allow'],
    ['allow', [], 'ask'],
  ])('by the rule %s agent(a) on the sub-agents %j is: %s', async (list, ids, expected) => {
    const args = { tasks: [...ids.map((id) => ({ id, task: 'x' })), 5, null] };
    const { outcome, by } = await explain({ [list]: ['agent(a)'] }, 'spawn_agents', args, ws);
    expect(expected.startsWith('ask ') ? by : outcome).toBe(expected);
  });

  it('a rule that allows agent(name) allows no tool that only has such arguments', async () => {
    const args = { tasks: [{ id: 'a', task: 'x' }] };
    const rules = permissions({ allow: ['agent(*)'] });
    expect((await rules.explain('mcp__x__run', args, ws)).outcome).toBe('ask');
    expect((await rules.explain('delegate', args, ws)).outcome).toBe('ask');
    const spawns = callOf('delegate', args, { spawns: true });
    expect((await checksOf(rules).permit(spawns.call, undefined)).outcome).toBe('allow');
    expect((await rules.explain('Delegate', args, ws)).outcome).toBe('allow');
    expect((await explain({ deny: ['agent(a)'] }, 'mcp__x__run', args, ws)).outcome).toBe('deny');
  });

  it('applies agent(name) to the tool of that name', async () => {
    expect((await explain({ allow: ['agent(Re*)'] }, 'agent_Review', {}, ws)).outcome).toBe('allow');
    expect((await explain({ deny: ['agent(other)'], allow: ['agent_review'] }, 'agent_review', {}, ws)).outcome).toBe(
      'allow',
    );
  });

  it.each([
    ['deny', 'https://a.test/x', 'deny'],
    ['deny', 'https://A.TEST./x', 'deny'],
    ['deny', 'https://sub.a.test/', 'ask'],
    ['deny', 'not an address', 'deny'],
    ['allow', 'https://a.test/x', 'allow'],
    ['allow', 'not an address', 'ask'],
    ['allow', 5, 'ask'],
  ])('by the rule %s webfetch(domain:a.test) on %j is: %s', async (list, url, expected) => {
    expect((await explain({ [list]: ['webfetch(domain:A.test)'] }, 'WebFetch', { url }, ws)).outcome).toBe(expected);
  });

  it.each([
    ['https://x.a.test/', 'allow'],
    ['https://a.test/', 'ask'],
    ['https://xa.test/', 'ask'],
  ])('by the rule webfetch(domain:*.a.test) on %s is: %s', async (url, expected) => {
    expect((await explain({ allow: ['webfetch(domain:*.a.test)'] }, 'WebFetch', { url }, ws)).outcome).toBe(expected);
  });

  it('remembers from a call that a tool changes nothing', async () => {
    const rules = permissions({ mode: 'plan' });
    const outcome = async () => (await rules.explain('Look', {}, ws)).outcome;
    expect(await outcome()).toBe('deny');
    await checksOf(rules).permit(callOf('look', {}, { readOnly: true }).call, undefined);
    expect(await outcome()).toBe('allow');
  });
});

describe('the modes of conversations', () => {
  it('apply to sub-agents by their parent, and setMode ends every approved plan', async () => {
    const rules = permissions({ mode: 'plan' });
    const outcome = async (more: Partial<CheckedCall>) =>
      (await checksOf(rules).permit(callOf('Write', { file_path: 'src/a.ts' }, more).call, undefined)).outcome;
    rules.endPlan('root');
    expect(await outcome({ conversationId: 'root' })).toBe('ask');
    expect(await outcome({ conversationId: 'sub', parentId: 'root' })).toBe('ask');
    expect(await outcome({ conversationId: 'other' })).toBe('deny');
    rules.setMode('plan');
    expect(rules.modeOf('root')).toBe('plan');
    expect(await outcome({ conversationId: 'root' })).toBe('deny');
  });
});

describe('the option decide', () => {
  it('gives no diagnostic of a call that was cancelled meanwhile', async () => {
    const controller = new AbortController();
    const decide = (): never => {
      controller.abort(new Error('cancelled'));
      throw new Error('late');
    };
    const { call, diagnostics } = callOf('deploy', {}, { signal: controller.signal });
    const { requested } = checksOf(permissions({ decide }));
    await expect(requested(call, { outcome: 'ask', by: 'x' })).rejects.toThrow('late');
    expect(diagnostics).toEqual([]);
  });

  it.each([
    ['allow', { decision: 'allow', by: 'decide' }],
    ['deny', { decision: 'deny', reason: 'decide' }],
    ['ask', undefined],
    [true, undefined],
  ])('that answers %j gives %j', async (answer, verdict) => {
    const { requested } = checksOf(permissions({ decide: () => answer as never }));
    expect(await requested(callOf('deploy', {}).call, { outcome: 'ask', by: 'x' })).toEqual(verdict);
  });
});
