/** Calls, results, plans, errors and updates as an editor receives them: every tool, kind of argument and boundary. */
import { RequestError, type SessionUpdate } from '@agentclientprotocol/sdk';
import { describe, expect, test } from 'vitest';
import type { Json, LogEntry } from '../../../machines/internal.ts';
import { answered, requestError, runFailure } from '../../../src/cli/acp/protocolErrors.ts';
import { SessionUpdates } from '../../../src/cli/acp/sessionUpdates.ts';
import { planOf, resultContent, shownCall } from '../../../src/cli/acp/toolCallWords.ts';
import { UpdateQueue } from '../../../src/cli/acp/updateQueue.ts';
import {
  AgentBusyError,
  ConfigurationError,
  LimitError,
  MediaTypeError,
  RunchartError,
  SessionBusyError,
} from '../../../src/errors.ts';
import type { RunResult } from '../../../src/index.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';

const CWD = '/project';
const shown = (name: string, args: Json, group?: 'read-group') => shownCall({ name, args, group }, CWD);

/** The kind of every tool of the program. */
const KINDS: { readonly [name: string]: string } = {
  ...{ Read: 'read', Ls: 'search', Glob: 'search', Grep: 'search', WebFetch: 'fetch' },
  ...{ Write: 'edit', Edit: 'edit', MultiEdit: 'edit', Bash: 'execute', BashOutput: 'execute', KillBash: 'execute' },
  ...{ TodoWrite: 'think', ExitPlanMode: 'switch_mode' },
};

describe('a call', () => {
  test('of each tool of the program has its kind, and of another tool that of its group', () => {
    for (const [name, kind] of Object.entries(KINDS)) expect([name, shown(name, {}).kind]).toEqual([name, kind]);
    const others = codingTools({ sandbox: 'off' }).filter(({ name }) => KINDS[name] === undefined);
    expect(others.map(({ name }) => name)).toEqual([]);
    const groups = {
      'read-group': 'read',
      'write-group': 'edit',
      'bash-group': 'execute',
      'other-group': 'other',
    } as const;
    for (const [group, kind] of Object.entries(groups) as [keyof typeof groups, string][])
      expect(shownCall({ name: 'mine', args: {}, group }, CWD).kind).toBe(kind);
    for (const name of ['mine', 'constructor', 'toString']) expect(shown(name, {}).kind).toBe('other');
  });

  test.each<[string, Json, string]>([
    ['Bash', { command: 'npm test' }, '`npm test`'],
    ['Bash', { command: 'echo `date`' }, '`` echo `date` ``'],
    ['Bash', { command: 'a\u202e\u001b[2J' }, '`a\\u202e\\x1b[2J`'],
    ['Read', { file_path: 'a.ts', path: 'b.ts' }, 'Read a.ts'],
    ['WebFetch', { url: 'https://a.test/' }, 'WebFetch https://a.test/'],
    ['Search', { query: 'q', path: 'b.ts' }, 'Search q'],
    ['Grep', { pattern: 'x' }, 'Grep x'],
    ['Grep', { pattern: 'x', path: 'src' }, 'Grep x in src'],
    ['Ls', { path: 'src' }, 'Ls src'],
    ['Ls', { path: '' }, 'Ls'],
    ['Ls', { path: 1 }, 'Ls'],
    ['Ls', [], 'Ls'],
    ['mine\n', null, 'mine\\n'],
  ])('%s with %j has the title %s', (name, args, title) => {
    expect(shown(name, args).title).toBe(title);
  });

  test('has a title of at most 200 characters, and marks for code besides', () => {
    expect(shown('Read', { file_path: 'x'.repeat(195) }).title).toBe(`Read ${'x'.repeat(195)}`);
    expect(shown('Read', { file_path: 'x'.repeat(196) }).title).toBe(`Read ${'x'.repeat(194)}…`);
    expect(shown('Bash', { command: 'x'.repeat(201) }).title).toBe(`\`${'x'.repeat(199)}…\``);
  });

  test.each<[string, Json, object[]]>([
    ['Read', { file_path: 'a.ts' }, [{ path: '/project/a.ts' }]],
    ['Read', { file_path: '/x/a.ts', offset: 1 }, [{ path: '/x/a.ts', line: 1 }]],
    ['Read', { file_path: 'a.ts', offset: 0 }, [{ path: '/project/a.ts' }]],
    ['Read', { file_path: 'a.ts', offset: 1.5 }, [{ path: '/project/a.ts' }]],
    ['Read', { file_path: 'a.ts', offset: '3' }, [{ path: '/project/a.ts' }]],
    ['Grep', { pattern: 'x', path: 'src' }, [{ path: '/project/src' }]],
    ['Grep', { pattern: 'x' }, []],
    ['mine', { path: 'src' }, []],
  ])('%s with %j is at %j', (name, args, locations) => {
    expect(shown(name, args).locations).toEqual(locations);
  });
});

type ToolResultEntry = Extract<LogEntry, { type: 'tool-result' }>;
const result = (text: string, outcome: ToolResultEntry['outcome'] = 'succeeded'): ToolResultEntry =>
  ({ type: 'tool-result', callId: 'c', outcome, content: text === '' ? [] : [{ type: 'text', text }] }) as never;
const PATCH = 'Edited a.ts\n--- a.ts\n+++ a.ts\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,2 @@\n+d\n e\n';

describe('a result', () => {
  test('of an edit is one diff for each place, and of a new file its content', () => {
    const edit = { name: 'Edit', args: { file_path: 'a.ts' } };
    const diff = (oldText: string | null, newText: string) => ({
      type: 'diff',
      path: '/project/a.ts',
      oldText,
      newText,
    });
    expect(resultContent(edit, result(PATCH), CWD)).toEqual([diff('a\nb', 'a\nc'), diff('e', 'd\ne')]);
    const write = { name: 'Write', args: { file_path: 'a.ts', content: 'x' } };
    expect(resultContent(write, result('Created a.ts'), CWD)).toEqual([diff(null, 'x')]);
    expect(resultContent(write, result(PATCH), CWD)).toHaveLength(2);
  });

  test('is its text if it failed, changed nothing, or is of a tool that edits no file', () => {
    const text = (words: string) => [{ type: 'content', content: { type: 'text', text: words } }];
    const write = { name: 'Write', args: { file_path: 'a.ts', content: 'x' } };
    expect(resultContent(write, result('Created a.ts', 'failed'), CWD)).toEqual(text('Created a.ts'));
    expect(resultContent(write, result('nothing changed'), CWD)).toEqual(text('nothing changed'));
    expect(resultContent({ name: 'mine', args: { file_path: 'a.ts' } }, result(PATCH), CWD)).toEqual(text(PATCH));
    expect(resultContent(undefined, result('a'), CWD)).toEqual(text('a'));
    expect(resultContent(undefined, result(''), CWD)).toEqual([]);
  });

  test('of a tool that runs, reads or searches is fenced, whatever it contains, and cut at 20,000 characters', () => {
    const textOf = (name: string, words: string): unknown =>
      (resultContent({ name, args: {} }, result(words), CWD)[0] as { content?: { text?: string } }).content?.text;
    for (const name of ['Bash', 'Read', 'Grep']) expect(textOf(name, 'a\n')).toBe('```\na\n```');
    expect(textOf('Bash', 'a ```` b')).toBe('`````\na ```` b\n`````');
    expect(textOf('WebFetch', 'a')).toBe('a');
    expect(textOf('WebFetch', 'a'.repeat(20_000))).toBe('a'.repeat(20_000));
    expect(textOf('WebFetch', 'a'.repeat(20_001))).toBe(`${'a'.repeat(19_999)}…`);
  });

  test('has its images, and names what is none or no image by its bytes', () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64');
    const content = [
      { type: 'image', mediaType: 'image/png', data: png },
      { type: 'image', mediaType: 'image/png', data: Buffer.from('no image').toString('base64') },
      { type: 'file', mediaType: 'application/pdf', data: 'aa', name: 'a.pdf' },
    ];
    const note = (text: string) => ({ type: 'content', content: { type: 'text', text } });
    expect(resultContent(undefined, { ...result(''), content } as never, CWD)).toEqual([
      { type: 'content', content: { type: 'image', mimeType: 'image/png', data: png } },
      note('[image image/png]'),
      note('[file application/pdf]'),
    ]);
  });
});

test('a plan has every step with its status and its priority, and what is no step is left out', () => {
  const todos: Json = [
    ...(['pending', 'in_progress', 'completed'] as const).map((status) => ({
      content: status,
      status,
      priority: 'high',
    })),
    ...(['high', 'medium', 'low', 'urgent'] as const).map((priority) => ({
      content: priority,
      status: 'odd',
      priority,
    })),
    { content: 'x\u202e'.padEnd(300, 'y') },
    { status: 'pending' },
    'text',
    null,
  ];
  const entries = planOf({ name: 'TodoWrite', args: { todos } }) ?? [];
  expect(entries.map(({ content, status, priority }) => [content.slice(0, 11), status, priority])).toEqual([
    ['pending', 'pending', 'high'],
    ['in_progress', 'in_progress', 'high'],
    ['completed', 'completed', 'high'],
    ['high', 'pending', 'high'],
    ['medium', 'pending', 'medium'],
    ['low', 'pending', 'low'],
    ['urgent', 'pending', 'medium'],
    ['x\\u202eyyyy', 'pending', 'medium'],
  ]);
  expect(entries.at(-1)?.content).toHaveLength(200);
  expect(planOf({ name: 'Other', args: { todos } })).toBeUndefined();
  for (const args of [{}, { todos: {} }, [], null]) expect(planOf({ name: 'TodoWrite', args })).toBeUndefined();
});

describe('an error', () => {
  test.each<[string, unknown, number, unknown]>([
    ['a missing key', new ConfigurationError('no API key: set one'), -32_000, { code: 'configuration' }],
    ['a wrong setting', new ConfigurationError('no model'), -32_602, { code: 'configuration' }],
    ['a media type', new MediaTypeError('no'), -32_602, { code: 'media_type' }],
    ['a busy session', new AgentBusyError('agent_busy', 'busy'), -32_600, { code: 'agent_busy' }],
    ['a limit', new LimitError('too many'), -32_600, { code: 'limit' }],
    ['a session in use', new SessionBusyError('in use'), -32_603, { code: 'session_busy' }],
    ['another error of the library', new RunchartError('mine', 'text'), -32_603, { code: 'mine' }],
    ['any error', new Error('text'), -32_603, undefined],
    ['a thrown text', 'text', -32_603, undefined],
  ])('for %s has the code of the protocol and that of the library', async (_, error, code, data) => {
    const message = error instanceof Error ? error.message : String(error);
    expect(requestError(error)).toMatchObject({ code, data });
    expect(requestError(error).message).toContain(message);
    await expect(answered(() => Promise.reject(error))).rejects.toMatchObject({ code, data });
  });

  test('of the protocol stays as it is', () => {
    const error = RequestError.resourceNotFound('x');
    expect(requestError(error)).toBe(error);
  });

  test.each<[Partial<RunResult>, string, string]>([
    [{ error: { code: 'server', message: 'down' }, cause: 'x', termination: 'fatal' } as never, 'server', 'down'],
    [{ cause: 'max_turns', termination: 'fatal' } as never, 'max_turns', 'the run ended: max_turns'],
    [{ termination: 'fatal' } as never, 'fatal', 'the run ended: fatal'],
    [{ cause: 'max_budget' } as never, 'max_budget', 'raise --max-budget-usd'],
  ])('of a run %# has the code of its error, else its cause, else its end', (runResult, code, message) => {
    const error = runFailure(runResult as RunResult);
    expect([error.code, error.data]).toEqual([-32_603, { code }]);
    expect(error.message).toContain(message);
  });
});

const chunk = (text: string, messageId = 'm', sessionUpdate = 'agent_message_chunk'): SessionUpdate =>
  ({ sessionUpdate, content: { type: 'text', text }, messageId }) as never;

describe('updates', () => {
  test('that wait are joined if they are neighbours of one message and one kind, and everything is sent in order', async () => {
    const sent: SessionUpdate[] = [];
    let goOn = (): void => {};
    const queue = new UpdateQueue(async (update) => {
      sent.push(update);
      if (sent.length === 1) await new Promise<void>((resolve) => (goOn = resolve));
    });
    queue.push([chunk('1')]);
    const other = { sessionUpdate: 'plan', entries: [] } as unknown as SessionUpdate;
    queue.push([chunk('a'), chunk('b'), chunk('c', 'n'), chunk('d', 'n', 'agent_thought_chunk')]);
    queue.push([chunk('e', 'n', 'agent_thought_chunk'), other, chunk('f', 'n', 'agent_thought_chunk')]);
    goOn();
    await queue.drained();
    expect(sent).toEqual([
      chunk('1'),
      chunk('ab'),
      chunk('c', 'n'),
      chunk('de', 'n', 'agent_thought_chunk'),
      other,
      chunk('f', 'n', 'agent_thought_chunk'),
    ]);
    queue.push([chunk('g')]);
    await queue.drained();
    expect(sent.at(-1)).toEqual(chunk('g'));
  });

  test('are dropped when the editor is gone, and sending them does not reject', async () => {
    let tries = 0;
    const queue = new UpdateQueue(async () => {
      tries += 1;
      throw new Error('gone');
    });
    queue.push([chunk('a'), chunk('b', 'n')]);
    await queue.drained();
    queue.push([]);
    await queue.drained();
    expect(tries).toBe(1);
  });

  const updates = (more: object = {}, earlier: readonly LogEntry[] = []) =>
    new SessionUpdates({ cwd: CWD, contextWindow: 1_000, notices: false, ...more }, earlier);
  const usage = { inputTokens: 100, outputTokens: 5, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const entry = (fields: object): LogEntry =>
    ({ seq: 0, at: 0, conversationId: 'c', runId: 'r', ...fields }) as LogEntry;
  const reply = (costUsd: number | null) =>
    entry({ type: 'model-reply', turn: 1, model: 'm', finish: 'stop', usage, costUsd });

  test('of the usage have the sum of all costs, those before included, each counted once', () => {
    const amounts = (costs: readonly (number | null)[], earlier: readonly LogEntry[] = []) => {
      const all = updates({}, earlier);
      return costs.map((costUsd) => (all.entry(reply(costUsd)).at(-1) as { cost?: { amount: number } }).cost?.amount);
    };
    expect(amounts([0.25, 0.5])).toEqual([0.25, 0.75]);
    expect(amounts([0.25], [reply(1), entry({ type: 'run-stop', reason: 'completed' }), reply(2)])).toEqual([3.25]);
    expect(amounts([0.25, null, 0.5])).toEqual([0.25, undefined, undefined]);
    expect(updates().usage()).toEqual([]);
    expect(updates({ contextWindow: undefined }).entry(reply(1))).toEqual([]);
  });

  test('of streamed text are not repeated with its entry, also in the second reply, and an interrupted one is marked once', () => {
    const all = updates();
    const texts = (list: readonly SessionUpdate[]) =>
      list.flatMap((update) =>
        'content' in update && 'messageId' in update ? [(update.content as { text?: string }).text] : [],
      );
    const says = (text: string) => entry({ type: 'agent-output', item: { type: 'assistant', text } });
    const thinks = (text: string) => entry({ type: 'agent-output', item: { type: 'reasoning', text } });
    for (const round of [1, 2]) {
      expect([round, texts(all.signal({ type: 'text-delta', runId: 'r', text: 'a' }))]).toEqual([round, ['a']]);
      expect([texts(all.entry(says('a'))), texts(all.entry(thinks('t')))]).toEqual([[], ['t']]);
      all.entry(reply(0));
    }
    expect(texts(all.entry(says('b')))).toEqual(['b']);
    expect(all.signal({ type: 'reset', runId: 'r' } as never)).toEqual([]);
    all.signal({ type: 'reasoning-delta', runId: 'r', text: 'a' });
    expect(texts(all.signal({ type: 'reset', runId: 'r' } as never))).toHaveLength(1);
    expect(all.signal({ type: 'reset', runId: 'r' } as never)).toEqual([]);
  });

  test('of a call show changed arguments, its state and its end, and progress its last line', () => {
    const all = updates();
    const call = {
      type: 'agent-output',
      item: { type: 'tool-call', callId: 'c', name: 'Bash', args: { command: 'a' } },
    };
    expect(all.entry(entry(call))[0]).toMatchObject({ toolCallId: 'c', status: 'pending', title: '`a`' });
    const started = { type: 'tool-started', callId: 'c' };
    expect(all.entry(entry(started))).toEqual([
      { sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'in_progress' },
    ]);
    const changed = all.entry(entry({ type: 'tool-suspended', callId: 'c', args: { command: 'b' }, reason: 'x' }))[0];
    expect(changed).toMatchObject({ status: 'pending', title: '`b`' });
    for (const update of ['started', null, { lastLine: ' ' }, { lastLine: 1 }])
      expect(all.signal({ type: 'tool-progress', runId: 'r', callId: 'c', elapsedMs: 1, update } as never)).toEqual([]);
    const progress = {
      type: 'tool-progress',
      runId: 'r',
      callId: 'd',
      path: ['c'],
      elapsedMs: 1,
      update: { lastLine: ' x\u001b ' },
    };
    expect(all.signal(progress as never)).toEqual([
      {
        sessionUpdate: 'tool_call_update',
        toolCallId: 'c',
        content: [{ type: 'content', content: { type: 'text', text: 'x\\x1b' } }],
      },
    ]);
    const end = (outcome: string, code?: string) =>
      all.entry(
        entry({ type: 'tool-result', callId: 'c', outcome, content: [], ...(code !== undefined && { code }) }),
      )[0];
    expect(end('succeeded')).toMatchObject({ status: 'completed' });
    expect(end('succeeded')).not.toHaveProperty('rawOutput');
    expect(end('failed', 'exit_1')).toMatchObject({
      status: 'failed',
      rawOutput: { outcome: 'failed', code: 'exit_1' },
    });
    expect(end('cancelled')).toMatchObject({ status: 'failed', rawOutput: { outcome: 'cancelled' } });
  });

  test('for the person are notices if the editor shows them, else thoughts with an id each', () => {
    expect(updates({ notices: true }).note('a\n')).toEqual({
      sessionUpdate: 'notice',
      severity: 'warning',
      title: 'a\\n',
    });
    const all = updates();
    expect([all.note('a'), all.note('b\n')]).toEqual([
      chunk('a', 'note/1', 'agent_thought_chunk'),
      chunk('b\\n', 'note/2', 'agent_thought_chunk'),
    ]);
    expect(all.entry(entry({ type: 'renamed', title: 'a\nb' }))).toEqual([
      { sessionUpdate: 'session_info_update', title: 'a\\nb' },
    ]);
  });
});
