/**
 * Arguments that a person edited, and those that a PermissionRequest hook replaces. Invariant: they are judged like the
 * model's, by validation, hooks, rules, plugins and `decide`. An edit answers a question and never a denial.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool, type Plugin } from '../../src/index.ts';
import { type Hook, type HookOptions, hooks, type PermissionOptions, permissions } from '../../src/node.ts';
import { bench, only, resultText } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';

interface Setup {
  hooks?: HookOptions;
  rules?: PermissionOptions | false;
  plugins?: readonly Plugin[];
  needsApproval?: boolean;
}

/** A call of `write` with the text `first`, after its run has settled. */
async function asked({ hooks: hooked = {}, rules = { ask: ['write'] }, plugins = [], needsApproval }: Setup) {
  const ran: string[] = [];
  const tool = defineTool({
    name: 'write',
    description: 'Writes',
    parameters: z.object({ text: z.string().max(20) }),
    ...(needsApproval !== undefined && { needsApproval }),
    execute: ({ text }) => void ran.push(text),
  });
  const { conversation } = await bench({
    tools: [tool],
    plugins: [...plugins, ...(rules === false ? [] : [permissions(rules)]), hooks(hooked)],
    replies: [[call('c1', 'write', { text: 'first' })], 'done', 'done'],
  });
  await conversation.send('go').result;
  const ended = (): string[] => only(conversation.log(), 'tool-result');
  return { conversation, ran, ended };
}
type Asked = Awaited<ReturnType<typeof asked>>;

async function edited({ conversation }: Asked, text: unknown = 'second') {
  await conversation.decide({ callId: 'c1', action: 'edit', args: { text } as never });
  return conversation.resume().result;
}
function noted<T>(answer: T, note: () => void): T {
  note();
  return answer;
}
const isSecond = (args: unknown): boolean => (args as { text: string }).text === 'second';
const onSecond = (answer: object): Hook => ({ run: ({ args }) => (isSecond(args) ? (answer as never) : undefined) });
/** Asks a person about every call, whatever the rules are. */
const asks: Hook = { run: () => ({ decision: 'ask' }) };

describe('edited arguments', () => {
  const refusing: [string, Setup, string][] = [
    [
      'a PreToolUse hook blocks them',
      { hooks: { PreToolUse: [onSecond({ decision: 'block', reason: 'no' })] } },
      'blocked',
    ],
    [
      'a required PreToolUse hook fails on them',
      { hooks: { PreToolUse: [onSecond({ decision: 'maybe' })] } },
      'blocked',
    ],
    [
      'a PermissionRequest hook denies them',
      { hooks: { PermissionRequest: [onSecond({ decision: 'block' })] } },
      'denied',
    ],
    [
      'decide denies them',
      { rules: { ask: ['write'], decide: ({ args }) => (isSecond(args) ? 'deny' : 'ask') } },
      'denied',
    ],
    [
      'decide denies them, and the tool alone requires approval',
      { needsApproval: true, rules: { decide: ({ args }) => (isSecond(args) ? 'deny' : 'ask') } },
      'denied',
    ],
    [
      'decide denies them, and a hook alone asks',
      {
        hooks: { PreToolUse: [asks] },
        rules: { allow: ['write'], decide: ({ args }) => (isSecond(args) ? 'deny' : 'ask') },
      },
      'denied',
    ],
    [
      'another plugin blocks them',
      {
        plugins: [
          { name: 'other', beforeToolExecute: ({ call }) => (isSecond(call.args) ? { block: 'no' } : undefined) },
        ],
      },
      'blocked',
    ],
  ];
  it.each(refusing)('they do not run if %s', async (_, setup, code) => {
    const on = await asked(setup);
    expect(on.conversation.pending).toHaveLength(1);
    await edited(on);
    expect([on.ran, on.ended()]).toEqual([[], [`tool-result c1 failed ${code}`]]);
  });

  it('they do not run if they do not validate, and no hook receives them', async () => {
    const seen: unknown[] = [];
    const on = await asked({ hooks: { PreToolUse: [{ run: ({ args }) => void seen.push(args) }] } });
    await edited(on, 5);
    expect([on.ran, on.ended(), seen]).toEqual([[], ['tool-result c1 failed invalid_arguments'], [{ text: 'first' }]]);
  });

  const asking: [string, Setup][] = [
    ['a rule asks about them', {}],
    ['a PreToolUse hook asks about them', { rules: {}, hooks: { PreToolUse: [asks] } }],
    ['the tool requires approval', { rules: false, needsApproval: true }],
    ['decide asks about them', { rules: { ask: ['write'], decide: () => 'ask' } }],
  ];
  it.each(asking)('they run if %s: the edit answers the question', async (_, setup) => {
    const on = await asked(setup);
    expect(on.conversation.pending).toHaveLength(1);
    await edited(on);
    expect([on.ran, on.conversation.pending]).toEqual([['second'], []]);
    expect(on.conversation.log().find(({ type }) => type === 'tool-allowed')).toMatchObject({ by: 'decision' });
  });

  it('the log names the person, also if a PermissionRequest hook allows them', async () => {
    const on = await asked({ hooks: { PermissionRequest: [onSecond({ decision: 'allow' })] } });
    await edited(on);
    expect(on.ran).toEqual(['second']);
    const allowed = on.conversation.log().filter(({ type }) => type === 'tool-allowed');
    expect(allowed).toMatchObject([{ by: 'decision' }]);
  });

  it('if a PreToolUse hook rewrites them, they need a new approval, and the approval runs the shown arguments', async () => {
    const on = await asked({ hooks: { PreToolUse: [onSecond({ updatedInput: { text: 'third' } })] } });
    await edited(on);
    expect([on.ran, on.conversation.pending]).toMatchObject([
      [],
      [{ callId: 'c1', args: { text: 'third' }, suspension: 2 }],
    ]);
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    await on.conversation.resume().result;
    expect(on.ran).toEqual(['third']);
  });

  it('an approval calls no hook and no `decide` again', async () => {
    const seen: string[] = [];
    const note = (name: string): Hook => ({ run: () => void seen.push(name) });
    const on = await asked({
      hooks: { PreToolUse: [note('PreToolUse')], PermissionRequest: [note('PermissionRequest')] },
      rules: { ask: ['write'], decide: () => noted('ask', () => seen.push('decide')) },
    });
    await on.conversation.decide({ callId: 'c1', action: 'approve' });
    await on.conversation.resume().result;
    expect([on.ran, seen]).toEqual([['first'], ['PreToolUse', 'PermissionRequest', 'decide']]);
  });
});

describe('the updatedInput of a PermissionRequest hook', () => {
  const allowing = (text: unknown): HookOptions => ({
    PermissionRequest: [{ run: () => ({ decision: 'allow', updatedInput: { text } as never }) }],
  });

  it('it runs in place of the arguments that were asked about', async () => {
    const on = await asked({ hooks: allowing('second') });
    expect([on.ran, on.conversation.pending]).toEqual([['second'], []]);
    const started = on.conversation.log().find(({ type }) => type === 'tool-started');
    expect(started).toMatchObject({ args: { text: 'second' } });
  });

  it('the decider receives it if the hook does not allow the call', async () => {
    const on = await asked({ hooks: { PermissionRequest: [{ run: () => ({ updatedInput: { text: 'second' } }) }] } });
    expect([on.ran, on.conversation.pending]).toMatchObject([[], [{ args: { text: 'second' } }]]);
  });

  it('it does not run if the rules deny it, whatever the hook returns', async () => {
    const deny: Plugin = permissions({ ask: ['write'] });
    const tool = defineTool({
      name: 'Bash',
      description: 'Runs',
      parameters: z.object({ command: z.string() }),
      execute: ({ command }) => void ran.push(command),
    });
    const ran: string[] = [];
    const { conversation } = await bench({
      tools: [tool],
      plugins: [
        deny,
        permissions({ deny: ['bash(rm *)'] }),
        hooks({ PermissionRequest: [{ run: () => ({ decision: 'allow', updatedInput: { command: 'rm x' } }) }] }),
      ],
      replies: [[call('c1', 'Bash', { command: 'make' })], 'done'],
    });
    await conversation.send('go').result;
    expect([ran, only(conversation.log(), 'tool-result')]).toEqual([[], ['tool-result c1 failed denied']]);
  });

  it('it does not run if another plugin blocks it', async () => {
    const other: Plugin = {
      name: 'other',
      beforeToolExecute: ({ call }) => (isSecond(call.args) ? { block: 'no' } : undefined),
    };
    const on = await asked({ hooks: allowing('second'), plugins: [other] });
    expect([on.ran, on.ended()]).toEqual([[], ['tool-result c1 failed blocked']]);
    expect(resultText(on.conversation.log(), 'c1')).toContain('Blocked by other');
  });

  it('it runs as another plugin rewrites it', async () => {
    const other: Plugin = {
      name: 'other',
      beforeToolExecute: ({ call }) => (isSecond(call.args) ? { args: { text: 'third' } } : undefined),
    };
    const on = await asked({ hooks: allowing('second'), plugins: [other] });
    expect([on.ran, on.conversation.pending]).toEqual([['third'], []]);
  });

  it('if it does not validate, it is no answer: nothing runs, and a person is asked about the model’s arguments', async () => {
    const on = await asked({ hooks: allowing(5) });
    expect([on.ran, on.conversation.pending]).toMatchObject([[], [{ args: { text: 'first' } }]]);
    const diagnostics = on.conversation.log().flatMap((entry) => (entry.type === 'diagnostic' ? [entry] : []));
    expect(diagnostics).toMatchObject([{ code: 'plugin_error', detail: { plugin: 'hooks' } }]);
  });

  it('one from a later hook than the allowing one is not allowed by it', async () => {
    const rewrite: Hook = { run: () => ({ updatedInput: { text: 'second' } }) };
    const on = await asked({ hooks: { PermissionRequest: [{ run: () => ({ decision: 'allow' }) }, rewrite] } });
    expect([on.ran, on.conversation.pending]).toMatchObject([[], [{ args: { text: 'second' } }]]);
  });

  it('later hooks and `decide` receive it', async () => {
    const seen: unknown[] = [];
    const on = await asked({
      hooks: { PermissionRequest: [{ run: () => ({ updatedInput: { text: 'second' } }) }] },
      rules: { ask: ['write'], decide: ({ args }) => noted('allow', () => seen.push(args)) },
    });
    expect([on.ran, seen]).toEqual([['second'], [{ text: 'second' }]]);
  });

  it.each(['UserPromptSubmit', 'PostToolUse', 'Stop'] as const)(
    'at %s, where no call waits, the answer is a failure',
    async (event) => {
      const on = await asked({
        rules: { allow: ['write'] },
        hooks: { [event]: [{ run: () => ({ updatedInput: { text: 'second' } }) }] },
      });
      expect(on.ran).toEqual(['first']);
      const codes = on.conversation.log().flatMap((entry) => (entry.type === 'diagnostic' ? [entry] : []));
      expect(codes[0]).toMatchObject({ code: 'hook_error', detail: { event } });
    },
  );
});
