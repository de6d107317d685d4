/**
 * The output of the program about servers, agents, skills, menus, exported sessions and questions, case by case. The texts of files,
 * servers and models are foreign: test/cli/foreign.test.ts has their control characters.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { CommandMenu } from '../../../src/cli/commands/commandMenu.ts';
import {
  agentLines,
  equipmentNotes,
  failedServers,
  serverLines,
  skillLines,
  tellEquipment,
} from '../../../src/cli/commands/equipmentLines.ts';
import { exportSession, markdownOf } from '../../../src/cli/commands/exportSession.ts';
import { keptTodos, openedPlanLines } from '../../../src/cli/commands/keptPlan.ts';
import type { Equipment } from '../../../src/cli/definitions/agentEquipment.ts';
import { approvalFacts, approvalLines } from '../../../src/cli/interactive/approval.ts';
import { rowsOf, rowText, type TextLine } from '../../../src/cli/interactive/textRows.ts';
import type { Conversation } from '../../../src/conversation/conversation.ts';
import type { PendingCall } from '../../../src/index.ts';

const shown = (lines: readonly TextLine[]): string[] =>
  lines.flatMap((line) => rowsOf(line, 200).map((row) => rowText(row).trimEnd()));

/** Equipment of these servers and these files. */
const equipment = (servers: readonly object[], more: object = {}): Equipment =>
  ({
    ...{ agents: [], skills: [], problems: [], untrusted: [], ...more },
    servers: {
      views: servers.map((server) => ({ name: 'git', path: '/p/.mcp.json', about: 'node git.js', ...server })),
      settled: Promise.resolve(),
    },
  }) as unknown as Equipment;

describe('/mcp', () => {
  test.each<[string, object, string[]]>([
    ['starts', { kind: 'starting' }, ['○ git  starting  node git.js  /p/.mcp.json']],
    [
      'is connected',
      { kind: 'connected', tools: ['a', 'b'], left: ['c: no schema', 'd: twice'] },
      ['✓ git  2 tools  node git.js  /p/.mcp.json', '  a b', '  left out: c: no schema', '  left out: d: twice'],
    ],
    [
      'is connected with one tool',
      { kind: 'connected', tools: ['a'], left: [] },
      ['✓ git  1 tool  node git.js  /p/.mcp.json', '  a'],
    ],
    [
      'failed',
      { kind: 'failed', why: 'it ended:\nno such\u001b[2J file' },
      ['✗ git  failed  node git.js  /p/.mcp.json', '  it ended:', '  no such\\x1b[2J file'],
    ],
    [
      'was not started',
      { kind: 'not started', why: 'its file is not trusted' },
      ['- git  not started  node git.js  /p/.mcp.json', '  its file is not trusted'],
    ],
  ])('shows a server that %s', (_, state, lines) => expect(shown(serverLines(equipment([{ state }])))).toEqual(lines));

  test('names the file where there is none', () => {
    expect(shown(serverLines(equipment([])))).toEqual(['there is no MCP server: .mcp.json in the project lists them']);
  });
});

describe('/agents and /skills', () => {
  const problems = ['a.md: no name', 'b.md: no description'];
  const agent = { name: 'review', description: 'Reviews.', path: '/p/review.md', tools: undefined, model: undefined };

  test('list each with its file, then the files that cannot be used', () => {
    const agents = [
      agent,
      { ...agent, name: 'fix', tools: ['Read', 'Edit'], model: 'small' },
      { ...agent, name: 'no', tools: [] },
    ];
    expect(shown(agentLines(equipment([], { agents, problems })))).toEqual([
      ...['agent_review  Reviews.', '  /p/review.md  all tools'],
      ...['agent_fix  Reviews.', '  /p/review.md  Read, Edit  model small'],
      ...['agent_no  Reviews.', '  /p/review.md'],
      ...problems,
    ]);
    const skills = [{ name: 'release', description: 'Releases.', path: '/p/SKILL.md' }];
    expect(shown(skillLines(equipment([], { skills, problems })))).toEqual([
      'release  Releases.',
      '  /p/SKILL.md',
      ...problems,
    ]);
  });

  test('name the place of a new one, also above files that cannot be used', () => {
    const none = equipment([], { problems });
    expect(shown(agentLines(none))).toEqual(['there is no agent: .runchart/agents/NAME.md describes one', ...problems]);
    expect(shown(skillLines(none))).toEqual([
      'there is no skill: .runchart/skills/NAME/SKILL.md describes one',
      ...problems,
    ]);
  });
});

describe('the notes at the start', () => {
  const many = (count: number, what: string): string[] => Array.from({ length: count }, (_, at) => `${what}${at}`);
  test.each<[number, number, string[]]>([
    [0, 0, []],
    [3, 0, ['p0', 'p1', 'p2']],
    [4, 0, ['p0', 'p1', 'p2', '1 more file cannot be used: /agents names them']],
    [
      5,
      1,
      [
        'p0',
        'p1',
        'p2',
        '2 more files cannot be used: /agents names them',
        'a file of this project does not count before you trust it',
      ],
    ],
    [0, 2, ['2 files of this project do not count before you trust them']],
  ])('of %i files that cannot be used and %i that are not trusted', (problems, untrusted, notes) => {
    const found = equipmentNotes(equipment([], { problems: many(problems, 'p'), untrusted: many(untrusted, 'u') }));
    expect(found.map((note) => note.replace(': runchart trust', ''))).toEqual(notes);
  });

  test.each<[string, string]>([
    ['ended with 3', 'the MCP server git: ended with 3'],
    ['git: no such program', 'git: no such program'],
    ['git failed:\n\n  at a\n  no such file \n', 'git failed:   no such file '],
    ['git failed:', 'git failed:'],
    ['git failed\nat line 3', 'git failed'],
    ['\n\ngit\u001b[2J', 'git\\x1b[2J'],
  ])('of a server that failed with %j are one line, once', async (why, line) => {
    const state = { kind: 'failed', why };
    const connected = { kind: 'connected', tools: [], left: [] };
    const all = equipment([
      { state },
      { state: connected },
      { state: { kind: 'not started', why } },
      { state: { kind: 'starting' } },
    ]);
    expect(failedServers(all)).toEqual([line]);
    const notes: string[] = [];
    tellEquipment({ ...all, problems: ['p'] }, (note) => notes.push(note));
    expect(notes).toEqual(['p']);
    await all.servers.settled;
    await Promise.resolve();
    expect(notes).toEqual(['p', line]);
  });
});

describe('the menu of commands', () => {
  const names = Array.from({ length: 12 }, (_, at) => `/c${String.fromCharCode(97 + at)}`);
  const menuOf = () => new CommandMenu(() => names.map((name) => [`${name} [x]`, 'does it'] as const));
  const chosenIn = (menu: CommandMenu): [name: string, first: string, last: string] => {
    const rows = shown(menu.lines('/c')).map((row) => row.slice(0, 5));
    expect(rows).toHaveLength(8);
    return [rows.find((row) => row.startsWith('›')) ?? '', rows[0] ?? '', rows.at(-1) ?? ''];
  };

  test('scrolls so that the chosen one of twelve is among the eight that are shown, round in both directions', () => {
    for (const step of [1, -1]) {
      const menu = menuOf();
      for (let moves = 0; moves <= 25; moves += 1) {
        const at = (((moves * step) % 12) + 12) % 12;
        const first = Math.max(0, at - 7);
        const [chosen, top, bottom] = chosenIn(menu);
        expect([chosen, top.slice(2), bottom.slice(2)]).toEqual([`› ${names[at]}`, names[first], names[first + 7]]);
        expect(menu.completed('/c')).toBe(`${names[at]} `);
        menu.move('/c', step);
      }
    }
  });

  test('begins at its first one when the text changes, also back to an earlier text', () => {
    const menu = menuOf();
    menu.move('/c', 3);
    expect(menu.completed('/')).toBe('/ca ');
    expect(menu.completed('/c')).toBe('/ca ');
    expect([menu.move('/cb', 1), menu.move('', 1), menu.move('/c x', 1)]).toEqual([false, false, false]);
  });
});

describe('an exported session', () => {
  const text = (words: string) => [{ type: 'text' as const, text: words }];
  const entries = [
    { type: 'user-message', kind: 'direct', content: text('go') },
    { type: 'agent-output', item: { type: 'reasoning', text: 'one\ntwo' } },
    { type: 'agent-output', item: { type: 'assistant', text: 'I look.' } },
    { type: 'agent-output', item: { type: 'tool-call', callId: 'c1', name: 'Bash', args: { command: 'ls ```` x' } } },
    { type: 'agent-output', item: { type: 'tool-call', callId: 'c2', name: 'Read', args: { path: 'a`b' } } },
    { type: 'tool-result', callId: 'c1', outcome: 'failed', content: text('no `such` file') },
    { type: 'tool-result', callId: 'gone', outcome: 'succeeded', content: text('') },
    { type: 'user-message', kind: 'steer', content: text('no') },
    { type: 'run-stop', reason: 'completed', cause: 'end_turn' },
    { type: 'run-stop', reason: 'interrupted', cause: 'cancelled' },
    { type: 'run-stop', reason: 'error' },
    { type: 'notice', code: 'x', text: 'not shown' },
  ] as unknown as LogEntry[];

  test('is Markdown with every message, call, result and end that was not plain', () => {
    expect(markdownOf(entries, 's 1')).toBe(
      [
        '# Session s 1',
        '## You\n\ngo',
        '> one\n> two',
        '## Agent\n\nI look.',
        '**Bash**\n\n`````sh\nls ```` x\n`````',
        '**Read**\n\n```json\n{\n  "path": "a`b"\n}\n```',
        'Result of Bash: failed\n\n```\nno `such` file\n```',
        'Result of gone: succeeded\n\n```\n\n```',
        '## You (steering)\n\nno',
        '*interrupted: cancelled*',
        '*error*\n',
      ].join('\n\n'),
    );
    expect(markdownOf([], 's')).toBe('# Session s\n\n\n');
  });

  test('has a fence around any number of backticks, and arguments that are no JSON as the model wrote them', () => {
    const many = '`a'.repeat(200_000);
    const call = { type: 'tool-call', callId: 'c', name: 'Read', args: null, argsText: '{"path": "a' };
    const odd = [
      { type: 'tool-result', callId: 'c', outcome: 'succeeded', content: text(many) },
      { type: 'agent-output', item: call },
    ] as unknown as LogEntry[];
    expect(markdownOf(odd, 's').split('\n\n').slice(1)).toEqual([
      'Result of c: succeeded',
      `\`\`\`\n${many}\n\`\`\``,
      '**Read**',
      '```\n{"path": "a\n```\n',
    ]);
  });

  test.each([
    ['', 'a_b_c..md', 'markdown'],
    ['talk.txt', 'talk.txt', 'markdown'],
    ['talk.json', 'talk.json', 'json'],
  ])('is written to the file %j of the working directory, %s, and replaces none', async (name, file, form) => {
    const cwd = await mkdtemp(join(tmpdir(), 'runchart-export-'));
    onTestFinished(() => rm(cwd, { recursive: true, force: true }));
    const hidden = [{ type: 'user-message', kind: 'direct', content: text('a\u202eb\u001b') }] as unknown as LogEntry[];
    const conversation = { id: 'a/b c.', cwd, log: () => hidden } as unknown as Conversation;
    expect(await exportSession(conversation, name)).toBe(join(cwd, file));
    const written = await readFile(join(cwd, file), 'utf8');
    if (form === 'json') expect(JSON.parse(written)).toEqual(hidden);
    else expect(written).toMatch(/^# Session a\/b c\./);
    expect(written.endsWith('\n')).toBe(true);
    for (const character of ['\u202e', '\u001b']) expect(written).not.toContain(character);
    await writeFile(join(cwd, file), 'mine');
    await expect(exportSession(conversation, name)).rejects.toMatchObject({ code: 'EEXIST' });
    expect(await readFile(join(cwd, file), 'utf8')).toBe('mine');
  });
});

test('a session with line ends of Windows is exported as lines, without escapes', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'runchart-export-'));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const entries = [
    { type: 'user-message', kind: 'direct', content: [{ type: 'text', text: 'a\r\nb' }] },
  ] as unknown as LogEntry[];
  const path = await exportSession({ id: 's', cwd, log: () => entries } as unknown as Conversation, '');
  expect(await readFile(path, 'utf8')).toBe('# Session s\n\n## You\n\na\nb\n');
});

describe('the plan that the model keeps', () => {
  const todo = (content: string, status: string) => ({ content, status });
  const called = (callId: string, todos: unknown, outcome = 'succeeded', name = 'TodoWrite') =>
    [
      { type: 'agent-output', item: { type: 'tool-call', callId, name, args: { todos } } },
      { type: 'tool-result', callId, outcome, content: [] },
    ] as unknown as LogEntry[];
  const first = [todo('one', 'completed'), todo('two', 'in_progress'), todo('three', 'pending')];

  test.each<[string, LogEntry[], number]>([
    ['its last call', [...called('a', []), ...called('b', first)], 3],
    ['its last call that succeeded', [...called('a', first), ...called('b', [], 'failed')], 3],
    ['its last call with a list', [...called('a', first), ...called('b', [{ content: 'x', status: 'other' }])], 3],
    ['an empty list', [...called('a', first), ...called('b', [])], 0],
    ['no other tool', called('a', first, 'succeeded', 'Other'), 0],
  ])('is that of %s', (_, entries, length) => expect(keptTodos(entries)).toHaveLength(length));

  test('is the earlier one after the request that changed it was taken back', () => {
    const entries = [...called('a', first), ...called('b', []), { type: 'rewound', toSeq: 1 } as LogEntry];
    const numbered = entries.map((entry, seq) => ({ ...entry, seq }));
    expect(keptTodos(numbered)).toEqual(first);
    expect(keptTodos([...numbered, { type: 'rewound', toSeq: -1, seq: 5 } as LogEntry])).toEqual([]);
  });

  test('is shown when the session is opened again and a step is open', () => {
    expect(shown(openedPlanLines(called('a', first)))).toEqual([
      'the plan of this session',
      '  ✓ one',
      '  ▸ two',
      '  ☐ three',
    ]);
    expect(openedPlanLines(called('a', [todo('one', 'completed')]))).toEqual([]);
    expect(openedPlanLines([])).toEqual([]);
  });
});

describe('the question about a call', () => {
  test('shows a command of any number of lines', () => {
    const call = { callId: 'c', suspension: 0, name: 'Bash', reason: 'permission', path: ['c'], payload: null };
    const args = { command: 'x\n'.repeat(200_000) };
    expect(approvalLines({ ...call, args } as unknown as PendingCall)).toHaveLength(200_002);
  });

  const question = (args: unknown, more: object = {}, name = 'Tool'): string[] =>
    shown(
      approvalLines({
        ...{ callId: 'c1', name, args, reason: 'permission', payload: null, suspension: 1, path: ['c1'], ...more },
      } as unknown as PendingCall),
    ).map((line) => line.replace(/^┃ ?/, ''));

  test.each<[unknown, string[]]>([
    [{ a: 'x' }, ['a: x']],
    [{ a: '' }, ['a: ""']],
    [{ a: 'true' }, ['a: "true"']],
    [{ a: 'false' }, ['a: "false"']],
    [{ a: 'null' }, ['a: "null"']],
    [{ a: '12' }, ['a: "12"']],
    [{ a: '-1' }, ['a: "-1"']],
    [{ a: ' x' }, ['a: " x"']],
    [{ a: 'x ' }, ['a: "x "']],
    [{ a: '"x"' }, ['a: "\\"x\\""']],
    [{ a: '[]' }, ['a: "[]"']],
    [{ a: '{}' }, ['a: "{}"']],
    [{ a: '|' }, ['a: "|"']],
    [{ a: 'x12 - y' }, ['a: x12 - y']],
    [{ a: true, b: null, c: 1.5 }, ['a: true', 'b: null', 'c: 1.5']],
    [{ a: [], b: {} }, ['a: []', 'b: {}']],
    [{ a: ['x', 'y'] }, ['a:', '  - x', '  - y']],
    [{ a: [{ b: 'x', c: 'y' }, 'z'] }, ['a:', '  -', '    b: x', '    c: y', '  - z']],
    [{ a: { b: { c: 'x' } } }, ['a:', '  b:', '    c: x']],
    [{ a: 'x\n\n y' }, ['a: |', '  x', '', '   y']],
    [{ a: ['x\ny'] }, ['a:', '  - |', '    x', '    y']],
    ['x', ['x']],
    [
      ['x', 1],
      ['- x', '- 1'],
    ],
    [null, ['null']],
    [{}, ['{}']],
    [[], ['[]']],
  ])('shows the arguments %j line by line, and quotes what would be read as something else', (args, lines) => {
    expect(question(args).slice(1)).toEqual(lines);
  });

  test('shows a command as it would run, with its other arguments, and a plan as it is written', () => {
    expect(question({ command: 'a\n b' }).slice(1)).toEqual(['$ a', '   b']);
    expect(question({ command: 'a', timeout_ms: 5 }).slice(1)).toEqual(['$ a', 'timeout_ms: 5']);
    expect(question({ plan: '# A\n- b' }, {}, 'ExitPlanMode')).toEqual([
      'ExitPlanMode asks to carry out this plan',
      '# A',
      '- b',
    ]);
    expect(question({ plan: 'a', b: 1 }).slice(1)).toEqual(['plan: a', 'b: 1']);
  });

  test.each<[object, string]>([
    [{}, 'Tool asks to run (permission)'],
    [{ reason: 'needsApproval' }, 'Tool asks to run (the tool requires approval)'],
    [{ payload: { by: 'mode default' } }, 'Tool asks to run (mode default)'],
    [{ path: ['c0', 'c1'] }, 'Tool asks to run (permission), for a sub-agent'],
  ])('names why: %j', (more, line) => expect(question({ a: 'x' }, more)[0]).toBe(line));

  const part = (text: string, outcome: string, why?: string) => ({ text, outcome, by: 'rule', ...(why && { why }) });
  test.each<[object, string[]]>([
    [{ parts: [part('a', 'ask')] }, []],
    [{ parts: [part('a', 'ask', 'it writes')] }, ['it writes']],
    [
      { parts: [part('a', 'allow'), part('b', 'ask', 'it writes')] },
      ['its parts:', '  a  allowed (rule)', '  b  asks (rule)', 'it writes'],
    ],
    [{ runs: 'in the sandbox' }, ['would run in the sandbox']],
    [{ rules: ['bash(a)', 'bash(b)'] }, ['always would allow  bash(a)', 'always would allow  bash(b)']],
  ])('shows what the rules say of it: %j', (payload, lines) => {
    expect(question({ a: 'x' }, { payload }).slice(2)).toEqual(lines);
  });

  test.each<[unknown, object]>([
    [undefined, {}],
    [[1], {}],
    [{ by: 5, runs: 5, place: 5, rules: [1, 'a', null], parts: 'x' }, { rules: ['a'] }],
    [
      { by: 'b', runs: 'r', place: 'p', rules: 'x' },
      { by: 'b', runs: 'r', place: 'p' },
    ],
  ])('takes of the payload %j only what has its form', (payload, facts) => {
    expect(approvalFacts(payload as never)).toEqual({
      ...{ by: '', parts: [], rules: [], runs: undefined, place: undefined },
      ...facts,
    });
  });
});
