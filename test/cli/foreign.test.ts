/**
 * Every output of the program, with hostile text in every field that it shows. Invariant: no part of the text controls
 * the terminal, none of it is dropped, and no line of it imitates a line of the program. A file that writes needs a row
 * in `writers`.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { sampleEntries } from '../../machines/log/entryKinds.ts';
import { agentLines, equipmentNotes, serverLines, skillLines } from '../../src/cli/commands/equipmentLines.ts';
import type { Equipment } from '../../src/cli/definitions/agentEquipment.ts';
import formats from '../../src/cli/formatted/textFormats.ts';
import { approvalLines } from '../../src/cli/interactive/approval.ts';
import { queuedLine, TranscriptRenderer } from '../../src/cli/interactive/conversationLines.ts';
import { LineTerminal } from '../../src/cli/interactive/conversationTerminal.ts';
import { footOf } from '../../src/cli/interactive/screenFoot.ts';
import { costLines, helpLines, unknownCommand } from '../../src/cli/interactive/slashCommands.ts';
import { foreignLine, ownLine, rowsOf, rowText, type TextLine } from '../../src/cli/interactive/textRows.ts';
import { showCall } from '../../src/cli/personInput.ts';
import { followAsJson, followAsMessages, Renderer } from '../../src/cli/renderLog.ts';
import { replayCommand } from '../../src/cli/replay/replayCommand.ts';
import { type Output, Screen } from '../../src/cli/screen.ts';
import { ServerConnections } from '../../src/cli/servers/serverConnections.ts';
import { isPlainWord, shellWord } from '../../src/cli/sessions/sessionStore.ts';
import { sessionText } from '../../src/cli/sessions/sessionsCommand.ts';
import { trustCommand } from '../../src/cli/trustCommand.ts';
import type { LogEntry, PendingCall } from '../../src/index.ts';
import type { Live } from '../../src/live.ts';
import { jsonLine } from '../../src/printable.ts';

/** Sequences that a terminal executes, hides or reverses, and a line that looks like one of the program. */
const CORPUS: readonly string[] = [
  'a\u001b]52;c;cm0gLXJm\u0007b',
  'a\u001b[2J\u001b[1;1Hb',
  'a\u001bP+q\u001b\\ b',
  'a\u009b31mb\u0085c',
  'a\u0000\u0008\u007fb',
  'safe\rrm -rf x',
  'a\u202egnp.exe\u2066b',
  'a\u200b\ufeff\u2060\u{e0041}b',
  'a\u2028b\u2029c',
  'a\ud800b',
  'ok\n■ completed\n── 2 · direct\n┃ run it?',
];

/**
 * Written by hand: C0 without line breaks and tabs, DEL, C1, direction marks, separators, surrogate halves, tags,
 * zero-width characters.
 */
const ACTS: readonly (readonly [number, number])[] = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0x61c, 0x61c],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x2069],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xe0000, 0xe007f],
];
const hasAct = (text: string): boolean =>
  Array.from(text, (character) => character.codePointAt(0) ?? 0).some((code) =>
    ACTS.some(([first, last]) => code >= first && code <= last),
  );

/** Each character of a foreign text, with the escapes decoded; text on several rows is joined. */
function readBack(shown: string): string {
  return shown
    .replaceAll(/\\u\{([0-9a-f]+)\}/g, (_, digits: string) => String.fromCodePoint(Number.parseInt(digits, 16)))
    .replaceAll(/\\u([0-9a-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .replaceAll(/\\x([0-9a-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .replaceAll('\\n', '\n')
    .replaceAll('\\r', '\r')
    .replaceAll('\\b', '\b')
    .replaceAll('\\\\', '\\');
}

/** Words that identify the kind of an entry for a reader; any other text may come from outside. */
const OWN = new Set(['type', 'kind', 'action', 'phase', 'boundary', 'finish', 'role', 'group', 'outcome']);
/** Ids identify entries, so they stay different. */
const IDS = new Set(['callId', 'runId', 'messageId', 'conversationId']);

/** The value with the text in the place of every text, also in keys. */
function filled(value: unknown, text: string, key = ''): unknown {
  if (typeof value === 'string') return OWN.has(key) ? value : IDS.has(key) ? `${value}${text}` : text;
  if (Array.isArray(value)) return value.map((item) => filled(item, text, key));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, child]) => [name, filled(child, text, name)] as const);
  const isFree = ['args', 'payload', 'detail', 'value', 'extra', 'writes', 'key', 'update'].includes(key);
  return Object.fromEntries(isFree ? [...fields, [text, text]] : fields);
}

const call: PendingCall = {
  callId: 'c1',
  name: 'Bash',
  args: { command: 'x', more: 'x' },
  reason: 'x',
  suspension: 1,
  path: ['c1'],
  payload: {
    by: 'x',
    parts: [
      { text: 'x', outcome: 'allow', by: 'x' },
      { text: 'x', outcome: 'ask', by: 'x' },
    ],
    rules: ['x'],
  },
};
const calls = (text: string): LogEntry[] => {
  const named = { type: 'agent-output', item: { type: 'tool-call', callId: 'c1', name: 'x', args: { command: 'x' } } };
  const odd = { type: 'agent-output', item: { type: 'tool-call', callId: 'c2', name: 'x', args: null, argsText: 'x' } };
  const outputEntries = ['assistant', 'reasoning'].map((type) => ({ type: 'agent-output', item: { type, text: 'x' } }));
  return [named, odd, ...outputEntries].map((body) => filled({ seq: 0, at: 0, runId: 'r', ...body }, text) as LogEntry);
};
const entriesWith = (text: string): LogEntry[] => [
  ...calls(text),
  ...sampleEntries('c').map((entry) => filled(entry, text) as LogEntry),
];
const liveWith = (text: string): Live[] => [
  { type: 'text-delta', runId: 'r', text },
  { type: 'reasoning-delta', runId: 'r', text },
  { type: 'reset', runId: 'r' },
  { type: 'tool-input-delta', runId: 'r', index: 0, name: text, text },
  { type: 'tool-progress', runId: 'r', callId: `c1${text}`, elapsedMs: 1, update: { lastLine: text } },
];

function collecting(): Output & { text: string } {
  const output = {
    text: '',
    styled: false,
    write(text: string) {
      output.text += text;
    },
  };
  return output;
}
const oneScreen = (act: (screen: Screen) => void): string => {
  const output = collecting();
  const screen = new Screen({ reply: output, steps: output });
  act(screen);
  screen.endLine();
  return output.text;
};
const laidOut = (lines: readonly TextLine[]): string =>
  lines
    .flatMap((line) => rowsOf(line, 1_000))
    .map((row) => `${rowText(row).trimEnd()}\n`)
    .join('');
const someConversation = (entries: readonly LogEntry[], signals: readonly Live[]) =>
  ({
    id: 'c',
    cwd: '/',
    log$: () => ({ subscribe: (take: (entry: LogEntry) => void) => entries.forEach(take) }),
    live$: { subscribe: (take: (signal: Live) => void) => signals.forEach(take) },
  }) as never;

async function directory(): Promise<string> {
  const made = await realpath(await mkdtemp(join(tmpdir(), 'runchart-foreign-')));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}
async function replayed(text: string, options: { rounds?: true; json?: true; asTest?: true }): Promise<string> {
  const path = join(await directory(), 'c.jsonl');
  await writeFile(
    path,
    entriesWith(text)
      .map((entry) => `${JSON.stringify(entry)}\n`)
      .join(''),
  );
  const shown = collecting();
  const notes = collecting();
  await replayCommand(path, options, { shown, notes }, new AbortController().signal);
  return shown.text + notes.text;
}

interface Row {
  shown(text: string): string | Promise<string>;
  /** A text of several lines keeps them here, each with a mark or inside its format: JSON, a program, a reply. */
  keepsLines?: true;
}

const rows: { readonly [name: string]: Row } = {
  'steps of a run': {
    shown: (text) =>
      oneScreen((screen) => {
        const renderer = new Renderer(screen);
        for (const entry of entriesWith(text)) if (!isReply(entry)) renderer.entry(entry);
      }),
  },
  'a streamed reply': {
    keepsLines: true,
    shown: (text) =>
      oneScreen((screen) => {
        const renderer = new Renderer(screen);
        for (const signal of liveWith(text)) renderer.signal(signal);
        for (const entry of calls(text)) renderer.entry(entry);
      }),
  },
  'a reply that comes letter by letter': {
    keepsLines: true,
    shown: (text) =>
      oneScreen((screen) => {
        const renderer = new Renderer(screen);
        for (const letter of text.split('')) renderer.signal({ type: 'text-delta', runId: 'r', text: letter });
      }),
  },
  'entries as JSON': {
    shown: (text) => {
      const output = collecting();
      followAsJson(someConversation(entriesWith(text), []), 0, output);
      return output.text;
    },
  },
  'messages of a transport as JSON': {
    shown: (text) => {
      const output = collecting();
      const about = { model: text, tools: [text], permissionMode: text };
      const conversation = someConversation(entriesWith(text), liveWith(text));
      followAsMessages(conversation, 0, output, about)({ subtype: 'success', text, cause: text } as never);
      return output.text;
    },
  },
  'the question of a run': {
    shown: (text) => oneScreen((screen) => showCall(screen, filled(call, text) as PendingCall)),
  },
  'the question of a conversation': { shown: (text) => laidOut(approvalLines(filled(call, text) as PendingCall)) },
  'entries of a conversation': {
    shown: (text) => {
      const renderer = new TranscriptRenderer();
      return laidOut(entriesWith(text).flatMap((entry) => renderer.entry(entry)));
    },
  },
  'a reply as Markdown': {
    keepsLines: true,
    shown: (text) => {
      const stream = new formats.MarkdownStream(() => 1_000);
      const lines = [text, `\`\`\`js\n${text}\n\`\`\``, `- ${text}\n`, `| a |\n|---|\n| ${text} |`].flatMap(
        (source) => [...stream.push(`${source}\n\n`), ...stream.open()],
      );
      return laidOut(lines);
    },
  },
  'a change of a file': {
    shown: (text) => {
      const renderer = new TranscriptRenderer({ formats: () => formats, rows: () => 90 });
      const args = { file_path: text, content: text };
      const called = { type: 'agent-output', item: { type: 'tool-call', callId: 'c', name: 'Write', args } };
      const diff = [`Replaced ${text}`, '@@ -1 +1,2 @@', '-old', `+${text}`].join('\n');
      const results = [`Created ${text}`, diff].flatMap((output) => [
        called,
        { type: 'tool-result', callId: 'c', outcome: 'succeeded', content: [{ type: 'text', text: output }] },
      ]);
      return laidOut(results.flatMap((entry) => renderer.entry({ seq: 0, at: 0, ...entry } as never)));
    },
  },
  'the current activity of a conversation': {
    shown: (text) => {
      const renderer = new TranscriptRenderer();
      const entered = calls(text).flatMap((entry) => renderer.entry(entry));
      const lines = liveWith(text).flatMap((signal) => [...renderer.signal(signal), ...renderer.underWay(0)]);
      return laidOut([...entered, ...lines, queuedLine('steer', text)]);
    },
  },
  'answers of typed commands': {
    shown: (text) => laidOut([unknownCommand(text, []), ...costLines(entriesWith(text))]),
  },
  'what files and MCP servers say': {
    shown: (text) => {
      const definition = { name: 'x', description: text, path: text };
      const equipment: Equipment = {
        ...{ tools: [], layers: [], problems: [text], untrusted: [text] },
        agents: [{ ...definition, tools: [text], withoutTools: [], model: text, instructions: '' }],
        commands: [{ ...definition, hint: text, body: text }],
        skills: [{ ...definition, body: text }],
        servers: new ServerConnections([{ name: text, path: text, about: text, why: text }]),
      };
      return laidOut([
        ...[serverLines(equipment), agentLines(equipment), skillLines(equipment)].flat(),
        ...helpLines(equipment.commands),
        ...equipmentNotes(equipment).map((note) => ownLine(['yellow', note])),
      ]);
    },
  },
  'errors of a conversation': { shown: (text) => laidOut([ownLine(['red', `error (${text}): ${text}`])]) },
  'the input line': {
    keepsLines: true,
    shown: (text) => {
      const line = { text, cursor: text.length };
      return footOf({ lines: [foreignLine('plain', text)], question: ['cyan', '>'], line }, 1_000, 50)
        .rows.map((row) => `${rowText(row)}\n`)
        .join('');
    },
  },
  'a terminal without cursor movement': {
    shown: (text) => {
      const output = Object.assign(collecting(), { columns: undefined });
      const source = { settle: () => [], view: () => ({ lines: [], question: ['cyan', '>'], isAwaiting: false }) };
      const terminal = new LineTerminal(new PassThrough(), output, source as never);
      terminal.commit([foreignLine('plain', text), ownLine(['plain', text])]);
      terminal.fill(text);
      terminal.close();
      return output.text;
    },
  },
  'the list of sessions': {
    shown: (text) => {
      const times = { createdAt: 0, updatedAt: 0, turns: 0, costUsd: 0 };
      return sessionText(
        { id: text, cwd: text, title: text, lastCause: text, status: 'idle', ...times } as never,
        0,
        true,
      );
    },
  },
  'the list of sessions as JSON': { shown: (text) => jsonLine({ id: text, cwd: text, [text]: text }) },
  'cycles of a stored log': { keepsLines: true, shown: (text) => replayed(text, {}) },
  'rounds of a stored log': { keepsLines: true, shown: (text) => replayed(text, { rounds: true }) },
  'a stored log as JSON': { shown: (text) => replayed(text, { json: true }) },
  'a stored log as a test': { keepsLines: true, shown: (text) => replayed(text, { asTest: true }) },
};
/** A complete reply is shown unchanged, like a streamed one. */
const isReply = (entry: LogEntry): boolean => entry.type === 'agent-output' && entry.item.type !== 'tool-call';

describe.each(Object.entries(rows))('H-079 %s', (_, { shown, keepsLines }) => {
  test.each(CORPUS)('shows %j and no part of it has an effect', async (text) => {
    const output = await shown(text);
    expect(hasAct(output), JSON.stringify(output)).toBe(false);
    // A log as a test contains a text as the typed input.
    expect(readBack(output)).toContain(text.split('\n', 1)[0]);
    if (!keepsLines)
      expect(output.split('\n').filter((line) => /^(?:■ completed|── 2|┃ run it)/.test(line))).toEqual([]);
  });
});

test.each(['the question of a run', 'the question of a conversation'])(
  'H-079 %s shows every character of every part that leaves no mark, also joiners and tabs',
  async (name) => {
    const hidden = 'git\u200d\tpush\ufe0f\u034f --force';
    const output = String(await rows[name]?.shown(hidden));
    expect(output).not.toMatch(/\t|\u200d|\ufe0f|\u034f/u);
    const shown = 'git\\u200d\\tpush\\ufe0f\\u034f --force';
    const places = ['name', 'reason', 'command', 'argument', 'part', 'who asks'].length;
    expect(output.replaceAll('\\\\t', '\\t').split(shown).length - 1).toBeGreaterThanOrEqual(places);
  },
);

/** Each file of the program that writes to an output, with its rows, or the reason why it writes no foreign text. */
const writers: { readonly [file: string]: readonly string[] | string } = {
  'acp/acpCommand.ts': 'messages of a protocol, as JSON',
  'screen.ts': ['steps of a run', 'a streamed reply', 'the question of a run'],
  'renderLog.ts': ['entries as JSON', 'messages of a transport as JSON'],
  'replay/replayCommand.ts': [
    'cycles of a stored log',
    'rounds of a stored log',
    'a stored log as JSON',
    'a stored log as a test',
  ],
  'interactive/conversationTerminal.ts': ['a terminal without cursor movement'],
  'interactive/drawnTerminal.ts': ['the input line', 'entries of a conversation'],
  'interactive/interactiveCommand.ts': 'the id of a session, printable and as one word of a shell: the test below',
  'chartsCommand.ts': 'the charts of this library',
  'inspectCommand.ts': 'an address of this machine, printable',
  'serveCommand.ts': 'an address of this machine and a token of its own',
  'main.ts': 'messages of errors and of the parser of arguments, printable; what this program is made of',
  'trustCommand.ts': 'names and wishes of configuration files, printable: the test below',
  'demo/scriptedServer.ts': 'HTTP answers and a port number',
};

test('every file of the program that writes to an output is in the list of writers', () => {
  const root = join(import.meta.dirname, '../../src/cli');
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const files = all.filter((file) => /\bwrite\(|console\./.test(readFileSync(join(root, file), 'utf8')));
  expect(files.sort()).toEqual(Object.keys(writers).sort());
  const named = Object.values(writers).flatMap((held) => (typeof held === 'string' ? [] : held));
  expect(named.filter((name) => !Object.hasOwn(rows, name))).toEqual([]);
});

test('an id of a session is shown as one word of a shell, whatever it holds, once or several times', () => {
  expect(['rent', '20260101-000000-abc', 'a.b_c@d:e'].map(shellWord)).toEqual([
    'rent',
    '20260101-000000-abc',
    'a.b_c@d:e',
  ]);
  for (const id of [
    '$(id)',
    '`id`',
    'a b',
    "it's",
    '-rf',
    '--store=x',
    '~',
    '*',
    'a;id',
    '"',
    '\\',
    '!!',
    '',
    'a\nb',
  ].flatMap((text) => [text, text + text, `${text}x${text}`])) {
    const words = execFileSync('bash', ['-c', `printf '%s\\0' ${shellWord(id)}`], { encoding: 'utf8' });
    expect(words).toBe(`${id}\0`);
    expect(isPlainWord(id), id).toBe(id === 'x');
  }
});

test('a project that is trusted is named with the settings of its file, printable', async () => {
  const outer = await directory();
  vi.stubEnv('XDG_CONFIG_HOME', join(outer, 'user'));
  onTestFinished(() => void vi.unstubAllEnvs());
  const project = join(outer, 'p\u001b[2J\nproject');
  await mkdir(join(project, '.runchart'), { recursive: true });
  const wish = { permissions: { allow: ['bash(echo \u202e *)'] } };
  await writeFile(join(project, '.runchart/config.json'), JSON.stringify(wish));
  let shown = '';
  await trustCommand(project, (text) => {
    shown += text;
  });
  expect(shown).toContain('p\\x1b[2J\\nproject');
  expect(shown).toContain('bash(echo \\u202e *)');
  expect(hasAct(shown)).toBe(false);
});
