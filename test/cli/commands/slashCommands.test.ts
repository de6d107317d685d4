/** Slash commands without a terminal: the effect of each, while the program is idle and while a request is under way. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { CommandPort } from '../../../src/cli/commands/commandPort.ts';
import { changePermissions, permissionLines } from '../../../src/cli/commands/permissionCommands.ts';
import { performCommand } from '../../../src/cli/commands/sessionCommands.ts';
import textFormats from '../../../src/cli/formatted/textFormats.ts';
import { COMMANDS, isProgramCommand, slashCommand } from '../../../src/cli/interactive/slashCommands.ts';
import { rowsOf, rowText, type TextLine } from '../../../src/cli/interactive/textRows.ts';
import type { Run } from '../../../src/conversation/run.ts';
import { call } from '../../support/scriptedReplies.ts';
import { agentOf } from '../interactive/talkBench.ts';

const textOf = (lines: readonly TextLine[]): string[] =>
  lines.flatMap((line) => rowsOf(line, 400).map((row) => rowText(row).trimEnd()));

/** A port that records the effects of commands. `isBusy`: a request is under way. */
async function commands({
  isBusy = false,
  window = { contextWindow: 100_000 } as object,
  replies = ['done', 'done'] as never[],
} = {}) {
  const { made } = await agentOf(replies.length > 0 ? replies : [], undefined, window);
  const conversation = await made.agent.open('s');
  onTestFinished(() => conversation.close());
  const output: string[] = [];
  const did: unknown[] = [];
  const runs: Run[] = [];
  const remembered = ['bash(remembered *)'];
  const port: CommandPort = {
    made: { ...made, compactNext: (text) => void did.push(['compact', text]) },
    terminal: {
      text: '',
      rows: 24,
      commit: (lines: readonly TextLine[]) => void output.push(...textOf(lines)),
      fill: (text: string) => void did.push(['fill', text]),
    } as unknown as CommandPort['terminal'],
    remembered,
    forget: (rule) => remembered.includes(rule) && remembered.splice(remembered.indexOf(rule), 1).length > 0,
    say: (_, text) => void output.push(text),
    watch: (run) => void runs.push(run),
    formats: async () => textFormats,
    list: async () => void did.push('list'),
    undo: async (name, argument) => void did.push([name, argument]),
    swap: async (choice) => void did.push(['swap', choice]),
    isBusy: () => {
      if (isBusy) output.push('busy');
      return isBusy;
    },
    remake: async (changes, restarts) => {
      did.push(['remake', changes, ...(restarts === undefined ? [] : [restarts])]);
      return !isBusy;
    },
    reopen: async (work) => {
      await conversation.close();
      did.push(['reopen', await work()]);
    },
    send: async (text) => void did.push(['send', text]),
  };
  const types = (line: string): Promise<void> => performCommand(line, conversation, port);
  return { made, conversation, port, types, output, did, runs };
}

/** For each command with its arguments: its effect, or a part of its output. */
const EFFECTS: readonly (readonly [line: string, did: unknown, words?: string | RegExp])[] = [
  ['/help', undefined, '/help'],
  ['/cost', undefined, 'no model was called yet'],
  ['/context', undefined, 'no model was called yet'],
  ['/compact', ['compact', '']],
  ['/compact keep the plan ', ['compact', 'keep the plan']],
  ['/new', ['swap', undefined]],
  ['/resume', 'list'],
  ['/resume  a b ', ['swap', 'a b']],
  ['/model', undefined, /window|token/],
  ['/model other', ['remake', { model: 'other' }]],
  ['/mode', undefined, /\[default\] acceptEdits plan dontAsk bypass/],
  ['/mode plan', ['remake', { permissionMode: 'plan' }]],
  ['/permissions', undefined, /^mode {2}default/],
  ['/mcp', undefined, 'there is no MCP server'],
  ['/mcp other', undefined, 'there is no MCP server'],
  ['/mcp restart', ['remake', {}, true]],
  ['/agents', undefined, 'there is no agent'],
  ['/skills', undefined, 'there is no skill'],
  ['/diff', undefined, 'no file was changed in this session'],
  ['/todos', undefined, 'the model keeps no list in this session'],
  ['/undo', ['undo', '']],
  ['/undo files', ['undo', 'files']],
  ['/rename', undefined, '/rename takes the title'],
  ['/rename the  parser ', undefined, 'the session is called the  parser'],
  ['/rewind', ['rewind', '']],
  ['/rewind 2 files', ['rewind', '2 files']],
  ['/fork', undefined, 'there is no message yet'],
  ['/later', undefined, '/later takes the message'],
  ['/unknown', undefined, 'there is no /unknown'],
  ['/hlep', undefined, 'did you mean /help?'],
];

describe('a command', () => {
  test.for(EFFECTS)('%s has its effect and no other', async ([line, wanted, words]) => {
    const { types, output, did } = await commands();
    await types(line);
    expect(did).toEqual(wanted === undefined ? [] : [wanted]);
    if (words === undefined) return;
    expect(output.some((each) => (typeof words === 'string' ? each.includes(words) : words.test(each)))).toBe(true);
  });

  test('of the list is one of the program, and each has its effect in the table above or in the session', () => {
    const names = COMMANDS.map(([usage]) => slashCommand(usage).name);
    expect(names.filter((name) => !isProgramCommand(name))).toEqual([]);
    const tried = new Set([...EFFECTS.map(([line]) => slashCommand(line).name), 'go', 'export', 'init', 'exit']);
    expect(names.filter((name) => !tried.has(name))).toEqual([]);
  });

  test('has the rest of its line as its argument, without the spaces around it', () => {
    expect(slashCommand(' /later  a\n b ')).toEqual({ name: 'later', argument: 'a\n b' });
    expect(slashCommand('/git:commit x')).toEqual({ name: 'git:commit', argument: 'x' });
    expect([slashCommand('/'), slashCommand('text')].map(({ name }) => name)).toEqual(['', '']);
  });

  test('/compact is refused without a window, and /model reports the missing window', async () => {
    const { types, output, did } = await commands({ window: { contextWindow: undefined } });
    await types('/compact');
    await types('/model');
    expect(did).toEqual([]);
    expect(output).toEqual([
      'how many tokens the model takes is not known, so nothing is summed up',
      expect.stringMatching(/window unknown · prices unknown/),
    ]);
  });

  test('/mode and /permissions show the mode of the conversation, which may have left that of the agent', async () => {
    const { made, types, output } = await commands();
    made.permissions.modeOf = () => 'plan';
    await types('/mode');
    await types('/permissions');
    expect(output.slice(0, 2)).toEqual([expect.stringContaining('default acceptEdits [plan] '), 'mode  plan']);
  });

  test('/model names the window, and the price of what goes in before that of what comes out', async () => {
    const { types, output } = await commands({ window: { contextWindow: 1, prices: { input: 1, output: 2 } } });
    await types('/model');
    expect(output[0]).toMatch(/ · 1 token · \D*1\S* in, \D*2\S* out for a million tokens/);
  });

  test('/go reports that there is nothing to continue', async () => {
    const { types, output, runs } = await commands();
    await types('/go');
    await runs[0]?.result;
    await expect.poll(() => output).toEqual(['nothing waits and nothing was interrupted']);
  });

  test('/init sends its request, and /export writes a file that it never replaces', async () => {
    const { types, output, did, made, conversation } = await commands();
    await types('/init');
    expect(did).toEqual([['send', expect.stringContaining('AGENTS.md')]]);
    await conversation.send('hello').result;
    for (const name of ['s.md', 'a.md', 'a.json']) {
      await types(`/export ${name === 's.md' ? '' : name}`);
      const text = await readFile(join(made.cwd, name), 'utf8');
      expect(output.at(-1)).toBe(`written: ${join(made.cwd, name)}`);
      if (name === 'a.json') expect(JSON.parse(text)).toEqual(conversation.log());
      else expect(text).toBe('# Session s\n\n## You\n\nhello\n\n## Agent\n\ndone\n');
      await expect(types(`/export ${name}`)).rejects.toThrow('EEXIST');
    }
    await writeFile(join(made.cwd, 'mine.txt'), 'mine');
    await expect(types('/export mine.txt')).rejects.toThrow('EEXIST');
    expect(await readFile(join(made.cwd, 'mine.txt'), 'utf8')).toBe('mine');
  });

  test('/fork copies all of the session, or what is before a message, whose text comes back; other numbers list them', async () => {
    const { types, output, did, conversation, made } = await commands();
    for (const text of ['first', 'second']) await conversation.send(text).result;
    const messages = async (id: string): Promise<number> => {
      const copy = await made.agent.open(id);
      onTestFinished(() => copy.close());
      return copy.log().filter(({ type }) => type === 'user-message').length;
    };
    for (const [argument, count, filled] of [
      ['', 2, []],
      ['1', 0, [['fill', 'first']]],
      ['2', 1, [['fill', 'second']]],
    ] as const) {
      did.length = 0;
      await types(`/fork ${argument}`);
      const [[what, id] = []] = did as [string, string][];
      expect([what, await messages(String(id)), did.slice(1)]).toEqual(['reopen', count, filled]);
    }
    for (const wrong of ['0', '3', '-1', '1.0', 'x', '1e0']) {
      [did.length, output.length] = [0, 0];
      await types(`/fork ${wrong}`);
      expect([wrong, did, output.slice(1)]).toEqual([wrong, [], ['1  first', '2  second']]);
    }
  });

  test('a copy that ends before a message contains no begun request, so nothing in it counts as interrupted', async () => {
    const { types, did, conversation, made } = await commands();
    for (const text of ['first', 'second']) await conversation.send(text).result;
    for (const number of [1, 2]) {
      did.length = 0;
      await types(`/fork ${number}`);
      const [[, id] = []] = did as [string, string][];
      const copy = await made.agent.open(String(id));
      onTestFinished(() => copy.close());
      const stops = copy.log().flatMap((entry) => (entry.type === 'run-stop' ? [entry.cause] : []));
      expect([number, stops]).toEqual([number, Array(number - 1).fill('end_turn')]);
    }
  });

  test('/fork leaves the line as it is where no copy was made', async () => {
    const { types, did, conversation, port } = await commands();
    await conversation.send('first').result;
    await performCommand('/fork 1', conversation, { ...port, reopen: async () => undefined });
    expect(did).toEqual([]);
    await types('/fork 1');
    expect(did).toEqual([expect.anything(), ['fill', 'first']]);
  });

  test('/fork lists long messages by their beginning, and no character in half', async () => {
    const { types, output, conversation } = await commands({ replies: ['one', 'two', 'three'] as never[] });
    for (const text of ['a'.repeat(70), `${'a'.repeat(68)}😀b`, `${'a'.repeat(69)}😀b`])
      await conversation.send(text).result;
    await types('/fork x');
    expect(output.slice(1)).toEqual([`1  ${'a'.repeat(70)}`, `2  ${'a'.repeat(68)}…`, `3  ${'a'.repeat(69)}…`]);
  });
});

describe('/permissions', () => {
  test.each(['allow', 'ask', 'deny'] as const)('%s adds the rule to the session', async (what) => {
    const { types, output, did } = await commands();
    await types(`/permissions ${what}  bash(npm test *) `);
    expect(did).toEqual([['remake', { [what]: ['bash(npm test *)'] }]]);
    expect(output).toEqual([`${what} bash(npm test *): until the program ends`]);
  });

  test('keep saves the rule for the directory and allows it now, and remove takes back either', async () => {
    const { types, output, did, port } = await commands();
    await types('/permissions keep bash(make *)');
    expect(did).toEqual([['remake', { allow: ['bash(make *)'] }]]);
    expect(output[0]).toMatch(/kept for this directory in .*allowed\.json/);
    for (const rule of ['bash(make *)', 'bash(remembered *)', 'bash(ls *)']) {
      [did.length, output.length] = [0, 0];
      await types(`/permissions remove ${rule}`);
      expect([output, did]).toEqual([[`removed: ${rule}`], [['remake', { removed: [rule] }]]]);
    }
    expect(port.remembered).toEqual([]);
    // The rule of the session's own layer stays listed there until the agent is made anew.
    for (const rule of ['bash(make *)', 'bash(remembered *)', 'bash(other)']) {
      [did.length, output.length] = [0, 0];
      await types(`/permissions remove ${rule}`);
      expect([output, did]).toEqual([[`no rule ${rule} was added here: rules of files are changed in the files`], []]);
    }
  });

  test.each(['allow', 'allow ', 'remove', 'keep', 'forbid bash', 'x'])(
    '%s without a rule or a subcommand changes nothing',
    async (argument) => {
      const { port, output, did } = await commands();
      await changePermissions(argument, port);
      expect(did).toEqual([]);
      expect(output).toEqual([expect.stringContaining('expected allow, ask, deny, keep or remove and a rule')]);
    },
  );

  test.each(['allow', 'ask', 'deny', 'keep', 'remove'])(
    '%s changes nothing while a request is under way',
    async (what) => {
      const { port, output, did } = await commands({ isBusy: true });
      await changePermissions(`${what} bash(remembered *)`, port);
      expect([did, output, port.remembered]).toEqual([[], ['busy'], ['bash(remembered *)']]);
    },
  );

  test('lists each rule with its layer, those that do not count, and why the last call was asked about, allowed or denied', async () => {
    const layers = [
      { name: 'mine', trusted: true, deny: ['bash(d)'], ask: ['bash(q)'], allow: ['bash(a)'] },
      { name: 'theirs\u202e', trusted: false, deny: ['bash(d2)'], allow: ['bash(a2)\u001b'] },
    ];
    const { port, conversation } = await commands({
      replies: [[call('c1', 'Deploy', { to: 'x' })], 'done'] as never[],
    });
    const lines = (entries: readonly object[] = []) =>
      textOf(permissionLines({ id: 's', log: () => entries } as never, { ...port, made: { ...port.made, layers } }));
    expect(lines()).toEqual([
      'mode  default',
      'deny  bash(d)  mine',
      'ask  bash(q)  mine',
      'allow  bash(a)  mine',
      'deny  bash(d2)  theirs\\u202e',
      'allow  bash(a2)\\x1b  theirs\\u202e, not trusted',
      'allow  bash(remembered *)  until the program ends',
      expect.stringContaining('/permissions allow, ask, deny or keep'),
    ]);
    const called = { type: 'agent-output', item: { type: 'tool-call', callId: 'c', name: 'Bash', args: {} } };
    const content = [{ type: 'text', text: 'no' }];
    const asked = { type: 'tool-suspended', callId: 'c', payload: { by: 'mode default' } };
    const allowed = { type: 'tool-allowed', callId: 'c', by: 'allow bash' };
    const denied = { type: 'tool-result', callId: 'c', code: 'denied', content };
    for (const [entries, text] of [
      [[asked], 'was asked about because of: mode default'],
      [[asked, allowed], 'was allowed by: allow bash'],
      [[allowed, denied], 'was denied: no'],
      [[denied, asked], 'was asked about because of: mode default'],
    ] as const)
      expect(lines([called, ...entries])).toContain(`the last call, Bash, ${text}`);
    for (const none of [
      { type: 'tool-suspended', callId: 'c' },
      { ...asked, payload: {} },
      { ...denied, code: 'x' },
    ])
      expect(lines([called, none]).join()).not.toContain('the last call');
    expect(conversation.log()).toHaveLength(1);
  });
});
