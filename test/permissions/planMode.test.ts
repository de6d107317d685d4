/** Plan mode ends in a plan that a person approves. */
import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { approvalLines } from '../../src/cli/interactive/approval.ts';
import { rowsOf, rowText } from '../../src/cli/interactive/textRows.ts';
import { subAgents } from '../../src/index.ts';
import { permissions } from '../../src/permissions/permissions.ts';
import { codingTools } from '../../src/tools/coding/index.ts';
import { bench, only, resultText } from '../support/agentBench.ts';
import { call, type Reply } from '../support/scriptedReplies.ts';

let cwd = '';
beforeEach(async () => {
  cwd = await realpath(await mkdtemp(join(tmpdir(), 'plan-')));
  await writeFile(join(cwd, 'f'), 'a\n');
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const PLAN = '# The plan\n\n1. Write `new`.';
const write = (id: string) => call(id, 'Write', { file_path: id, content: 'x' });
const plan = (id: string) => call(id, 'ExitPlanMode', { plan: PLAN });

async function planning(replies: readonly Reply[], options: Parameters<typeof permissions>[0] = {}) {
  const rules = permissions({ mode: 'plan', ...options });
  const tools = [...codingTools({ sandbox: 'off' }), rules.exitPlanMode()];
  return { rules, ...(await bench({ tools, plugins: [rules], replies, cwd })) };
}

it('nothing can be changed before, an approved plan ends the mode, and changes then ask as in mode default', async () => {
  const { rules, conversation } = await planning([[write('c1')], [plan('c2')], [write('c3')], 'done']);
  const { pending } = await conversation.send('go').result;
  expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed denied']);
  expect(pending.map(({ name, args }) => [name, args])).toEqual([['ExitPlanMode', { plan: PLAN }]]);
  expect(rules.modeOf('c')).toBe('plan');
  await conversation.decide({ callId: 'c2', action: 'approve' });
  const after = await conversation.resume().result;
  expect(resultText(conversation.log(), 'c2')).toContain('the mode is default: carry the plan out now.');
  expect(after.pending.map(({ callId, payload }) => [callId, payload])).toEqual([
    ['c3', expect.objectContaining({ by: 'mode default' })],
  ]);
  await conversation.decide({ callId: 'c3', action: 'approve' });
  expect((await conversation.resume().result).text).toBe('done');
  expect(['c1', 'c3'].map((name) => existsSync(join(cwd, name)))).toEqual([false, true]);
});

it('a denied plan leaves the mode, and the model receives the reason', async () => {
  const { rules, conversation } = await planning([[plan('c1')], [write('c2')], 'done']);
  await conversation.send('go').result;
  await conversation.decide({ callId: 'c1', action: 'deny', reason: 'too large' });
  expect((await conversation.resume().result).text).toBe('done');
  expect(resultText(conversation.log(), 'c1')).toContain('too large');
  expect(only(conversation.log(), 'tool-result')).toEqual([
    'tool-result c1 failed denied',
    'tool-result c2 failed denied',
  ]);
  expect(rules.modeOf('c')).toBe('plan');
});

it('the mode ends for its own conversation only', async () => {
  const { rules, agent, conversation } = await planning([[plan('c1')], 'done', [write('c2')], 'done']);
  await conversation.send('go').result;
  await conversation.decide({ callId: 'c1', action: 'approve' });
  await conversation.resume().result;
  const other = await agent.open('other');
  await other.send('go').result;
  expect(only(other.log(), 'tool-result')).toEqual(['tool-result c2 failed denied']);
  expect([rules.modeOf('c'), rules.modeOf('other'), rules.mode]).toEqual(['default', 'plan', 'plan']);
});

it('after an approved plan "always allow" saves the rules of a call, literal and wider ones', async () => {
  const { rules, conversation } = await planning([[plan('c1')], [write('c2')], 'done']);
  const args = { file_path: 'src/x', content: 'x' };
  expect(await rules.widened('Write', args, cwd)).toEqual([]);
  expect(await rules.remember('Write', args, cwd)).toEqual([]);
  await conversation.send('go').result;
  await conversation.decide({ callId: 'c1', action: 'approve' });
  expect((await conversation.resume().result).pending).toHaveLength(1);
  expect(await rules.widened('Write', args, cwd)).toEqual(['edit(./src/**)']);
  expect(await rules.remember('Write', { file_path: 'c2', content: 'x' }, cwd)).toEqual(['edit(./c2)']);
});

it('sub-agents ask about changes once the plan of their conversation is approved', async () => {
  const rules = permissions({ mode: 'plan', allow: ['spawn_agents'] });
  const tools = [...codingTools({ sandbox: 'off' }), rules.exitPlanMode(), subAgents()];
  const spawn = (id: string) => call(id, 'spawn_agents', { tasks: [{ id: 'a', task: 'write it' }] });
  const replies: Reply[] = [[plan('c1')], [spawn('c2')], [write('c3')], 'failed', 'done'];
  const { conversation } = await bench({ tools, plugins: [rules], replies, cwd });
  await conversation.send('go').result;
  await conversation.decide({ callId: 'c1', action: 'approve' });
  const { pending } = await conversation.resume().result;
  expect(JSON.stringify(pending)).toContain('"by":"mode default"');
});

it('the plan is denied if nobody can be asked, and deny rules hold after the plan', async () => {
  const { agent } = await planning([[plan('c1')], 'done']);
  expect((await agent.run('go')).text).toBe('done');
  const { conversation } = await planning([[plan('c1')], [write('c2')], 'done'], { deny: ['edit(./c2)'] });
  await conversation.send('go').result;
  await conversation.decide({ callId: 'c1', action: 'approve' });
  await conversation.resume().result;
  expect(only(conversation.log(), 'tool-result').at(-1)).toBe('tool-result c2 failed denied');
});

it('another mode has no plan to end', () => {
  const rules = permissions({ mode: 'dontAsk' });
  rules.endPlan('c');
  expect(rules.modeOf('c')).toBe('dontAsk');
});

it('the question shows the plan as it is written, with escapes for what would drive a terminal', async () => {
  const { conversation } = await planning([[call('c1', 'ExitPlanMode', { plan: '# Plan\n\n- one\x1b[2J' })]]);
  const { pending } = await conversation.send('go').result;
  const lines = pending
    .flatMap((each) => approvalLines(each))
    .flatMap((line) => rowsOf(line, 200).map((row) => rowText(row).trimEnd()));
  expect(lines.slice(0, 4)).toEqual(['┃ ExitPlanMode asks to carry out this plan', '┃ # Plan', '┃', '┃ - one\\x1b[2J']);
});
