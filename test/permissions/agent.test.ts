/** Permissions in an agent: the log records each decision, and a person answers questions. */
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { defineTool, type Plugin, toolResult } from '../../src/index.ts';
import { type PermissionOptions, permissions } from '../../src/node.ts';
import { type BenchOptions, bench, only, restart, resultText } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';
import { workspace } from './permissionWorkspace.ts';

const ws = await workspace();

/** A shell that only records its input. */
function shell() {
  const ran: string[] = [];
  const tool = defineTool({
    name: 'Bash',
    description: 'Runs a command',
    parameters: z.object({ command: z.string() }),
    execute: ({ command }) => {
      ran.push(command);
      return `ran ${command}`;
    },
  });
  return { ran, tool };
}

async function run(options: PermissionOptions, commands: readonly string[], more: BenchOptions = {}) {
  const { ran, tool } = shell();
  const plugin = permissions(options);
  const calls = commands.map((command, index) => call(`c${index + 1}`, 'Bash', { command }));
  const made = await bench({
    tools: [tool],
    cwd: ws,
    replies: [calls, 'done', 'done'],
    ...more,
    plugins: [...(more.plugins ?? []), plugin],
  });
  const result = await made.conversation.send('go').result;
  return { ...made, ran, tool, plugin, result, log: made.conversation.log() };
}

const allowedBy = (log: readonly { type: string }[]): unknown[] =>
  log.flatMap((each) => (each.type === 'tool-allowed' ? [(each as unknown as { by: string }).by] : []));

it.each([
  [true, ['allow', 'allow']],
  [undefined, ['ask', 'ask']],
])('a read-only tool (%j) is explained by its name as called, in any letters', async (readOnly, outcomes) => {
  const parameters = z.object({});
  const more = readOnly === undefined ? {} : { readOnly };
  const tool = defineTool({ name: 'LookUp', description: '', parameters, ...more, execute: () => 'found' });
  const plugin = permissions({});
  const { conversation } = await bench({
    tools: [tool],
    cwd: ws,
    replies: [[call('c1', 'LookUp')], 'done'],
    plugins: [plugin],
  });
  await conversation.send('go').result;
  const explained = ['LookUp', 'lookup'].map((name) => plugin.explain(name, {}, ws));
  expect((await Promise.all(explained)).map(({ outcome }) => outcome)).toEqual(outcomes);
});

describe('permissions of an agent', () => {
  it('every executed call has its permission in the log before its start', async () => {
    const options = { allow: ['bash(npm test *)'] };
    const { ran, log } = await run(options, ['npm test', 'git status'], { policies: { toolExecution: 'sequential' } });
    expect(ran).toEqual(['npm test', 'git status']);
    expect(allowedBy(log)).toEqual(['allow bash(npm test *)', 'read-only']);
    expect(only(log, 'tool-allowed', 'tool-started')).toEqual([
      'tool-allowed c1',
      'tool-started c1',
      'tool-allowed c2',
      'tool-started c2',
    ]);
  });

  it('S002-07 a denied call is a failed result with the code denied, and the run continues', async () => {
    const { ran, log, result } = await run({ deny: ['bash(rm *)'] }, ['ls; rm x']);
    expect(ran).toEqual([]);
    expect(only(log, 'tool-result', 'tool-started', 'tool-allowed')).toEqual(['tool-result c1 failed denied']);
    expect(resultText(log, 'c1')).toContain('deny bash(rm *)');
    expect(result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
  });

  it('a call that the rules ask about waits for a decision, whose request contains the command parts and the rule that "always" would save', async () => {
    const { conversation, ran, result } = await run({}, ['ls && make all']);
    expect(result.termination).toBe('Suspended');
    expect(ran).toEqual([]);
    expect(conversation.pending).toMatchObject([
      {
        callId: 'c1',
        reason: 'permission',
        payload: {
          by: 'mode default',
          parts: [
            { text: 'ls', outcome: 'allow' },
            { text: 'make all', outcome: 'ask' },
          ],
          rules: ['bash(make all)'],
        },
      },
    ]);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    await conversation.resume().result;
    expect(ran).toEqual(['ls && make all']);
    expect(allowedBy(conversation.log())).toEqual(['decision']);
  });

  it('a person may deny, and this differs from the absence of a person', async () => {
    const { conversation, ran } = await run({}, ['make']);
    await conversation.decide({ callId: 'c1', action: 'deny', reason: 'not now' });
    await conversation.resume().result;
    expect(ran).toEqual([]);
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed denied']);
    expect(resultText(conversation.log(), 'c1')).toContain('not now');
  });

  it('H-177 edited arguments are checked by the rules again: a denial applies, and the edit answers a question', async () => {
    const first = await run({ deny: ['bash(rm *)'] }, ['make']);
    await first.conversation.decide({ callId: 'c1', action: 'edit', args: { command: 'rm x' } });
    await first.conversation.resume().result;
    expect(first.ran).toEqual([]);
    expect(only(first.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed denied']);
    const second = await run({ deny: ['bash(rm *)'] }, ['make']);
    await second.conversation.decide({ callId: 'c1', action: 'edit', args: { command: 'make -n' } });
    await second.conversation.resume().result;
    expect(second.ran).toEqual(['make -n']);
  });

  it('a decision outlives the process, and a later deny rule still applies', async () => {
    const old = await run({}, ['make a']);
    await old.conversation.decide({ callId: 'c1', action: 'approve' });
    const { ran, tool } = shell();
    const strict = permissions({ deny: ['bash(make *)'] });
    const next = await restart(old, { tools: [tool], cwd: ws, replies: ['done'], plugins: [strict] });
    await next.conversation.resume().result;
    expect(ran).toEqual([]);
    expect(only(next.conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed denied']);
  });

  it('"always allow" permits the next call of the session', async () => {
    const command = 'make all';
    const again = [call('c2', 'Bash', { command }), call('c3', 'Bash', { command: 'make install' })];
    const replies = [[call('c1', 'Bash', { command })], 'done', again, 'done'];
    const { conversation, plugin, ran } = await run({}, [], { replies });
    expect(await plugin.remember('Bash', { command }, ws)).toEqual(['bash(make all)']);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    await conversation.resume().result;
    const result = await conversation.send('again').result;
    expect(ran).toEqual([command, command]);
    expect(result.pending.map(({ callId }) => callId)).toEqual(['c3']);
    expect(allowedBy(conversation.log())).toEqual(['decision', 'allow bash(make all)']);
  });

  it('TRC-10 each layer decides if the previous ones have no rule, and the verdict names the deciding one', async () => {
    const rule = ['bash(make *)'];
    const layers: [PermissionOptions, string][] = [
      [{ disabledTools: ['Bash'] }, 'deny'],
      [{ deny: rule }, 'deny'],
      [{ mode: 'plan' }, 'deny'],
      [{ ask: rule }, 'ask'],
      [{ allow: rule }, 'allow'],
    ];
    const deciders: string[] = [];
    for (const [index, [, outcome]] of layers.entries()) {
      const options: PermissionOptions = Object.assign({}, ...layers.slice(index).map(([option]) => option));
      const verdict = await permissions(options).explain('Bash', { command: 'make all' }, ws);
      expect(verdict.outcome).toBe(outcome);
      deciders.push(verdict.by);
    }
    const rest = await permissions({}).explain('Bash', { command: 'make all' }, ws);
    expect([...deciders, rest.by]).toEqual([
      'disabled Bash',
      'deny bash(make *)',
      'mode plan',
      'ask bash(make *)',
      'allow bash(make *)',
      'mode default',
    ]);
    const user = { name: 'user', trusted: true, allow: rule };
    expect(await permissions({ layers: [user] }).explain('Bash', { command: 'make all' }, ws)).toMatchObject({
      outcome: 'allow',
      layer: 'user',
    });
    const { ran, log } = await run({ decide: () => 'allow' }, ['make all']);
    expect(ran).toEqual(['make all']);
    expect(allowedBy(log)).toEqual(['decide']);
  });

  it('S002-22 if nobody can be asked, in dontAsk mode and under agent.run, a question is a denial', async () => {
    const { ran, log } = await run({ mode: 'dontAsk' }, ['make']);
    expect(ran).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed denied']);
    const { tool, ran: alone } = shell();
    const replies = [[call('c1', 'Bash', { command: 'make' })], 'done'];
    const { agent } = await bench({ tools: [tool], cwd: ws, replies, plugins: [permissions({})] });
    const result = await agent.run('go');
    expect(alone).toEqual([]);
    expect(result).toMatchObject({
      termination: 'NaturalEnd',
      calls: [{ callId: 'c1', outcome: 'failed', code: 'denied' }],
    });
  });

  it('S002-22 `decide` answers for a person, and an error in it is no answer', async () => {
    const decide = vi
      .fn()
      .mockReturnValueOnce('allow')
      .mockReturnValueOnce('deny')
      .mockRejectedValueOnce(new Error('x'));
    const commands = ['a', 'b', 'c', 'ls'];
    const { ran, log, result } = await run({ decide }, commands, { policies: { toolExecution: 'sequential' } });
    expect(ran).toEqual(['a']);
    expect(decide.mock.calls.map(([{ args }]) => args.command)).toEqual(['a', 'b', 'c']);
    expect(allowedBy(log)[0]).toBe('decide');
    expect(only(log, 'tool-result', 'tool-suspended')).toContain('tool-result c2 failed denied');
    expect(only(log, 'diagnostic')).toEqual(['diagnostic permission_decide_error']);
    expect(result.pending.map(({ callId }) => callId)).toEqual(['c3']);
  });

  it('arguments that another plugin rewrites are checked by the rules again, in any order of the plugins', async () => {
    const rewriting: Plugin = { name: 'rewriting', beforeToolExecute: () => ({ args: { command: 'rm x' } }) };
    const { ran, log } = await run({ deny: ['bash(rm *)'] }, ['ls'], { plugins: [rewriting] });
    expect(ran).toEqual([]);
    expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed denied']);
  });

  it('of the rules of two plugins the strictest verdict applies, in any order', async () => {
    const lists = ['deny', 'allow'] as const;
    for (const [first, second] of [lists, [...lists].reverse()]) {
      const rules = (list = 'deny'): PermissionOptions => ({ [list]: ['bash(make *)'] });
      const { ran, log } = await run(rules(second), ['make'], { plugins: [permissions(rules(first))] });
      expect(ran).toEqual([]);
      expect(only(log, 'tool-result')).toEqual(['tool-result c1 failed denied']);
    }
  });

  it('edited arguments that a plugin rewrites need a new approval, because the person saw others', async () => {
    const rewriting: Plugin = {
      name: 'rewriting',
      beforeToolExecute: ({ decision }) =>
        decision?.action === 'edit' ? { args: { command: 'make all' } } : undefined,
    };
    const { ran, conversation } = await run({}, ['make'], { plugins: [rewriting] });
    await conversation.decide({ callId: 'c1', action: 'edit', args: { command: 'make -n' } });
    await conversation.resume().result;
    expect(ran).toEqual([]);
    expect(conversation.pending).toMatchObject([{ callId: 'c1', args: { command: 'make all' } }]);
  });

  it('other plugins do not receive a denied call, and a block takes precedence over a question', async () => {
    const seen: string[] = [];
    const blocking: Plugin = {
      name: 'blocking',
      beforeToolExecute: ({ call: { callId } }) => {
        seen.push(callId);
        return { block: 'no' };
      },
    };
    const { conversation, log } = await run({ deny: ['bash(rm *)'] }, ['rm x', 'make'], { plugins: [blocking] });
    expect(seen).toEqual(['c2']);
    expect(only(log, 'tool-result').sort()).toEqual(['tool-result c1 failed denied', 'tool-result c2 failed blocked']);
    expect(conversation.pending).toEqual([]);
  });

  it('a tool that requires approval asks in bypass mode too', async () => {
    const ran: string[] = [];
    const tool = defineTool({
      name: 'pay',
      description: 'Pays',
      parameters: z.object({ sum: z.number() }),
      needsApproval: ({ sum }) => sum > 10,
      execute: ({ sum }) => {
        ran.push(`${sum}`);
        return toolResult.success('paid');
      },
    });
    const replies = [[call('c1', 'pay', { sum: 5 }), call('c2', 'pay', { sum: 50 })], 'done'];
    const { conversation } = await bench({ tools: [tool], replies, plugins: [permissions({ mode: 'bypass' })] });
    const result = await conversation.send('go').result;
    expect(ran).toEqual(['5']);
    expect(result.pending).toMatchObject([{ callId: 'c2', payload: { by: 'needsApproval' } }]);
  });

  it('a layer without a name, or with the name of another or of the session, has its number in messages', async () => {
    const names = [undefined, 'a', 'a', 'session', 'b', undefined] as string[];
    const layers = names.map((name, at) => ({ ...(name && { name }), allow: [`bash(x${at})`], ask: [`bash(y${at})`] }));
    const rules = permissions({ layers: layers as PermissionOptions['layers'] & object });
    const labels = ['layers[0]', 'layers[1] a', 'layers[2] a', 'layers[3] session', 'b', 'layers[5]'];
    expect(rules.ignored).toEqual(labels.map((label, at) => `${label}: bash(x${at})`));
    for (const [at, layer] of labels.entries())
      expect(await rules.explain('Bash', { command: `y${at}` }, ws)).toMatchObject({ outcome: 'ask', layer });
  });

  it('rules of an untrusted layer are reported once as ignored', async () => {
    const layers = [{ name: 'project', allow: ['bash(make *)'] }];
    const { log } = await run({ layers }, ['ls', 'pwd']);
    expect(only(log, 'diagnostic')).toEqual(['diagnostic permission_rules_ignored']);
  });
});
