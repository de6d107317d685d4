/**
 * One request from the command line: `runchart -p`, `runchart run`, what continues, waits or is denied, and usage errors.
 * Invariant: the reply is alone on standard output.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import type { Outgoing } from '../../src/transports/index.ts';
import { storedEntries } from '../e2e/cli.ts';
import { type ModelServer, modelServer, type Script } from '../e2e/modelServer.ts';
import { entriesIn, explains, hangs, KEY, place, QUESTION, readsMainGo } from '../e2e/runDirectory.ts';
import { deaf, scripted, t } from '../support/scriptedReplies.ts';
import { type Surroundings, start } from './programHere.ts';

const says =
  (text: string): Script =>
  (reply) => {
    reply.text(text);
    reply.finish('stop');
  };
const runs =
  (command: string, more: object = {}): Script =>
  (reply) => {
    reply.call('call_1', 'Bash', JSON.stringify({ command, ...more }));
    reply.finish('tool_calls');
  };

/** A directory, and a function that runs the program there to its end. */
async function placed(server: ModelServer, config?: object) {
  const where = await place(server, config);
  const { cwd, env } = where;
  const ended = (args: readonly string[], more: Surroundings = {}) =>
    start([...args, '--cwd', cwd], { ...more, env: { ...env, ...more.env } }).ended;
  return { ...where, ended };
}
const FORMS = [
  ['runchart run', (words: readonly string[]) => ['run', ...words, '-m', 'm1']],
  ['runchart -p', (words: readonly string[]) => ['-m', 'm1', '-p', ...words]],
] as const;
const sessionsOf = async (directory: string): Promise<string[]> =>
  (await readdir(directory).catch(() => [])).filter((name) => name.endsWith('.jsonl')).sort();

describe.each(FORMS)('%s', (_, form) => {
  test('prints the reply alone on standard output, and the steps and the session on standard error', async () => {
    const server = await modelServer(readsMainGo, explains);
    const { ended, sessions } = await placed(server);
    const { code, stdout, stderr } = await ended(form(QUESTION.split(' ')));
    expect([code, stdout]).toEqual([0, "I'll read the file.\nIt counts words.\n"]);
    const [file = ''] = await sessionsOf(sessions);
    expect(stderr.split('\n')).toEqual([
      `> ${QUESTION}`,
      '→ Read {"file_path":"main.go"}',
      expect.stringMatching(/^ {2}✓ Read 34 lines/),
      '■ completed · 2 turns · 200 tokens in, 40 out · cost unknown',
      `session ${file.replace('.jsonl', '')}, log ${join(sessions, file)}`,
      '',
    ]);
    expect(file).toMatch(/^\d{8}-\d{6}-[0-9a-f]{6}\.jsonl$/);
  });

  test('sends piped text after the words, and takes it alone as the request', async () => {
    const server = await modelServer(explains, explains);
    const { ended } = await placed(server);
    await ended(form(['what', 'is', 'this?']), { input: 'a\nb\n' });
    await ended(form([]), { input: ' text \n\n' });
    expect(server.asked.map(({ messages }) => messages.at(-1)?.content)).toEqual(['what is this?\n\na\nb', ' text']);
  });

  test('without words, piped text and a session there is nothing to do: exit code 2, and no session begins', async () => {
    const { ended, sessions } = await placed(await modelServer());
    for (const input of [undefined, '', ' \n']) {
      const { code, stdout, stderr } = await ended(form([]), { input });
      expect([code, stdout, stderr]).toEqual([
        2,
        '',
        'runchart: there is nothing to do: give a prompt, or a session to go on with\n',
      ]);
    }
    expect(await sessionsOf(sessions)).toEqual([]);
  });

  test('a failure of the model ends with 1, names the next step, and prints no key', async () => {
    const server = await modelServer((reply) => reply.refuse(401, { error: { message: `no such key ${KEY}` } }));
    const { code, stdout, stderr } = await (await placed(server)).ended(form(['hi']));
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^error \(\w+\): .*check OPENAI_API_KEY/m);
    expect(stderr).toContain('■ error (model)');
    expect(stderr).not.toContain(KEY);
  });

  test('the limit of turns ends with 4, and the session continues afterwards', async () => {
    const server = await modelServer(readsMainGo, explains);
    const { ended, sessions } = await placed(server);
    expect((await ended([...form(['go']), '--max-turns', '1'])).code).toBe(4);
    const [file = ''] = await sessionsOf(sessions);
    const again = await ended(['-m', 'm1', '-r', file.replace('.jsonl', ''), '-p', 'and now?']);
    expect([again.code, again.stdout]).toEqual([0, 'It counts words.\n']);
  });

  test('a signal cancels the request: exit code 130, and the stop is stored', async () => {
    const { cwd, env, sessions } = await place(await modelServer(hangs));
    const program = start([...form(['hello']), '--cwd', cwd], { env });
    await program.says('Let me think');
    program.signal('SIGINT');
    expect((await program.ended).code).toBe(130);
    expect(program.stderr).toContain('■ interrupted (cancelled)');
    const [file = ''] = await sessionsOf(sessions);
    const entries = await storedEntries(sessions, file.replace('.jsonl', ''));
    expect(entries.find(({ type }) => type === 'run-stop')).toMatchObject({
      reason: 'interrupted',
      cause: 'cancelled',
    });
  });

  test('a session of another directory is refused and released, and so is a held one', async () => {
    const server = await modelServer(explains, explains);
    const { ended, env, root, sessions } = await placed(server);
    await ended(['run', 'one', '-m', 'm1', '--new', '--session', 's']);
    const option = form([])[0] === 'run' ? '--session' : '-r';
    const elsewhere = await start([...form(['two']), option, 's', '--cwd', root], { env }).ended;
    expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining('give --cwd')]);
    const holder = await jsonlStore(sessions).open('s');
    const held = await ended([...form(['two']), option, 's']);
    expect([held.code, held.stderr]).toEqual([6, expect.stringContaining('"s" is open in this process')]);
    await holder.close();
    expect((await ended([...form(['two']), option, 's'])).code).toBe(0);
    expect(server.asked).toHaveLength(2);
  });

  test('commands of files count once the project is trusted, and files of an untrusted project are counted', async () => {
    const server = await modelServer(explains, explains);
    const { ended, cwd, env } = await placed(server);
    await mkdir(join(cwd, '.runchart', 'commands'), { recursive: true });
    await writeFile(join(cwd, '.runchart', 'commands', 'check.md'), 'Check all of $ARGUMENTS.');
    const before = await ended(form(['/check the words']));
    expect(server.asked[0]?.messages.at(-1)?.content).toBe('/check the words');
    expect(before.stderr).toMatch(/^! a file of this project does not count before you trust it: runchart trust$/m);
    expect((await start(['trust', '--cwd', cwd], { env }).ended).stdout).toContain('check.md');
    const after = await ended(form(['/check the words']));
    expect(JSON.stringify(server.asked[1]?.messages.at(-1))).toContain('Check all of the words.');
    expect(after.stderr).not.toContain('trust');
  });

  test('commands in the background are named when they end, with the program or before, and the next request contains that', async () => {
    const server = await modelServer(runs('echo ready; sleep 60', { run_in_background: true }), explains, explains);
    const { ended, sessions } = await placed(server);
    const { code, stdout, stderr } = await ended([...form(['serve']), '--permission-mode', 'bypass']);
    expect([code, stdout]).toEqual([0, 'It counts words.\n']);
    const [, id = ''] =
      /^! (bash_\w+) echo ready; sleep 60: it ends now, because the program ends$/m.exec(stderr) ?? [];
    const [file = ''] = await sessionsOf(sessions);
    await ended(['-m', 'm1', '-r', file.replace('.jsonl', ''), '-p', 'and now?']);
    expect(JSON.stringify(server.asked[2]?.messages.at(-1))).toContain(`The background command ${id} (`);
  });

  test('piped text attaches no file to a command: only the words and the text of the command do', async () => {
    const server = await modelServer(explains, explains);
    const { ended, cwd, root } = await placed(server);
    await mkdir(join(root, 'config', 'runchart', 'commands'));
    await writeFile(join(root, 'config', 'runchart', 'commands', 'review.md'), 'Read @rules.md first. $ARGUMENTS');
    for (const name of ['rules.md', 'words.md', 'hidden.md']) await writeFile(join(cwd, name), `text of ${name}`);
    await ended(form(['/review', '@words.md']), { input: '+ see @hidden.md now\n' });
    await ended(form([]), { input: '/review @words.md' });
    const contents = server.asked.map(({ messages }) => JSON.stringify(messages.at(-1)?.content));
    expect(contents[0]).toContain('see @hidden.md now');
    for (const content of contents) {
      expect([...content.matchAll(/text of (\w+)/g)].map(([, name]) => name).sort()).toEqual(['rules', 'words']);
    }
  });

  test('a path after @ attaches no file, also to a request with a note about commands in the background', async () => {
    const server = await modelServer(runs('sleep 60', { run_in_background: true }), explains, explains, explains);
    const { ended } = await placed(server);
    await ended([...form(['serve', '@main.go']), '--permission-mode', 'bypass']);
    for (const words of ['and @main.go now', 'and @main.go now']) await ended(['-m', 'm1', '-c', '-p', words]);
    const contents = [0, 2, 3].map((at) => JSON.stringify(server.asked[at]?.messages.at(-1)?.content));
    expect(contents).toEqual([
      '"serve @main.go"',
      expect.stringMatching(
        /^\[\{"type":"text","text":"and @main\.go now"\},\{"type":"text","text":"\[The background command [^{}]*\}\]$/,
      ),
      '"and @main.go now"',
    ]);
  });
});

describe('a call that the rules ask about', () => {
  const command = "touch 'made by it'";

  test('-p without a terminal denies it and prints the rule that allows it, quoted for a shell', async () => {
    const server = await modelServer(runs(command), explains, runs('rm -rf ~ $(x)'), explains, runs(command), explains);
    const { ended, cwd } = await placed(server);
    const denied = await ended(['-m', 'm1', '-p', 'make it']);
    expect([denied.code, denied.stdout]).toEqual([0, 'It counts words.\n']);
    const [, hint = ''] =
      /^! Bash is denied, since there is no terminal to ask on: this would allow it: --allow '(.*)'$/m.exec(
        denied.stderr,
      ) ?? [];
    expect(hint).toContain(String.raw`'\''`);
    expect(existsSync(join(cwd, 'made by it'))).toBe(false);
    const other = await ended(['-m', 'm1', '-p', 'make it']);
    expect(other.stderr).toContain('to ask on: no rule would allow it; ask for it on a terminal');
    const rule = hint.replaceAll(String.raw`'\''`, "'");
    expect((await ended(['-m', 'm1', '--allow', rule, '-p', 'make it'])).stderr).not.toContain('denied');
    expect(existsSync(join(cwd, 'made by it'))).toBe(true);
  });

  test.each([[['--json']], [[]]])(
    'run %j without a terminal waits: exit code 3 and the command that decides',
    async (json) => {
      const server = await modelServer(runs(command));
      const { ended, sessions } = await placed(server);
      const begun = await ended(['run', 'make it', '-m', 'm1', '--new', '--session', 'a session', ...json]);
      expect(begun.code).toBe(3);
      const how = "There is no terminal to ask on. Decide on one with: runchart run --session 'a session'\n";
      expect(begun.stderr).toContain(`"command": "${command}"\n    }\n${how}`);
      const before = await storedEntries(sessions, 'a session');
      const without = await ended(['run', '-m', 'm1', '--session', 'a session', ...json]);
      expect([without.code, without.stderr]).toEqual([3, expect.stringContaining(how)]);
      expect(without.stderr).not.toContain('the prompt was not sent');
      const withPrompt = await ended(['run', 'and now?', '-m', 'm1', '--session', 'a session', ...json]);
      expect([withPrompt.code, withPrompt.stderr]).toEqual([
        3,
        expect.stringContaining(`${how}the prompt was not sent\n`),
      ]);
      expect(await storedEntries(sessions, 'a session')).toEqual(before);
      expect(server.asked).toHaveLength(1);
    },
  );

  const onTerminal = async (...scripts: Script[]) => {
    const server = await modelServer(runs(command), ...scripts);
    const where = await placed(server);
    const typed = new PassThrough();
    const program = (args: readonly string[]) => start([...args, '--cwd', where.cwd], { env: where.env, typed });
    return { ...where, server, typed, program };
  };

  test.each([
    ['yes', true],
    ['n', false],
  ])('on a terminal %j decides in the request that asked, for run and for -p', async (word, runsIt) => {
    for (const [, form] of FORMS) {
      const { program, typed, cwd } = await onTerminal(explains);
      const asked = program(form(['make it']));
      await asked.says('approve? [y]es, [n]o, [l]ater:');
      typed.write('maybe\n');
      await expect.poll(() => asked.stderr.split('approve?').length).toBe(3);
      typed.write(`${word}\n`);
      expect((await asked.ended).code).toBe(0);
      expect([asked.stdout, existsSync(join(cwd, 'made by it'))]).toEqual(['It counts words.\n', runsIt]);
    }
  });

  test('on a terminal "later" and the end of the input leave it waiting, and a later prompt comes after the decision', async () => {
    const { program, typed, server, sessions, cwd, env } = await onTerminal(explains, says('And more.'));
    const asked = program(['run', 'make it', '-m', 'm1', '--new', '--session', 's']);
    await asked.says('[l]ater:');
    typed.write('later\n');
    expect((await asked.ended).code).toBe(3);
    expect(asked.stderr).toContain('Decide later with: runchart run --session s\n');
    const before = await storedEntries(sessions, 's');
    const closed = start(['run', '-m', 'm1', '--session', 's', '--cwd', cwd], { env, typed: new PassThrough().end() });
    expect((await closed.ended).code).toBe(3);
    expect(await storedEntries(sessions, 's')).toEqual(before);
    const again = new PassThrough();
    const decided = start(['run', 'and now?', '-m', 'm1', '--session', 's', '--cwd', cwd], { env, typed: again });
    await decided.says('[l]ater:');
    again.write('y\n');
    expect((await decided.ended).code).toBe(0);
    expect(decided.stdout).toBe('It counts words.\nAnd more.\n');
    expect(server.asked[2]?.messages.at(-1)?.content).toBe('and now?');
  });

  test('a signal at the question cancels the call: exit code 130, and a prompt is not sent', async () => {
    const { program, typed, sessions, server } = await onTerminal();
    const asked = program(['run', 'make it', '-m', 'm1', '--new', '--session', 's']);
    await asked.says('[l]ater:');
    typed.write('l\n');
    await asked.ended;
    const again = program(['run', 'and now?', '-m', 'm1', '--session', 's']);
    await again.says('[l]ater:');
    again.signal('SIGTERM');
    expect((await again.ended).code).toBe(130);
    const entries = await storedEntries(sessions, 's');
    expect(entries.find(({ type }) => type === 'tool-result')).toMatchObject({ outcome: 'cancelled' });
    expect(entries.find(({ type }) => type === 'run-stop')).toMatchObject({ reason: 'interrupted' });
    expect(server.asked).toHaveLength(1);
  });

  test.each([
    ['run', ['run', '--json', '-m', 'm1', 'make it'], 3],
    ['-p', ['--json', '-m', 'm1', '-p', 'make it'], 0],
  ] as const)('with --json %s asks nobody, even on a terminal', async (_, args, code) => {
    const { program, cwd } = await onTerminal(explains);
    const asked = await program(args).ended;
    expect([asked.code, existsSync(join(cwd, 'made by it'))]).toEqual([code, false]);
    expect(asked.stderr).not.toContain('approve?');
  });
});

describe('--json', () => {
  test('of run prints the entries of the log, those of this request alone, and nothing on standard error', async () => {
    const { ended, sessions, cwd } = await placed(await modelServer(readsMainGo, explains, explains));
    await writeFile(join(cwd, '.mcp.json'), '{"mcpServers":{"none":{"command":"there-is-no-such-program"}}}');
    const first = await ended(['run', QUESTION, '-m', 'm1', '--json', '--new', '--session', 's']);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(entriesIn(first.stdout)).toEqual(await storedEntries(sessions, 's'));
    const second = await ended(['run', 'and now?', '-m', 'm1', '--json', '--session', 's']);
    expect([second.code, second.stderr]).toEqual([0, '']);
    const entries = [...entriesIn(first.stdout), ...entriesIn(second.stdout)];
    expect(entries).toEqual(await storedEntries(sessions, 's'));
  });

  test('of -p prints what a transport sends, with the result as the last line', async () => {
    const { ended, sessions } = await placed(await modelServer(readsMainGo, explains));
    const { code, stdout, stderr } = await ended(['-m', 'm1', '--json', '-p', QUESTION]);
    const outgoing = entriesIn(stdout) as Outgoing[];
    const session = outgoing[0]?.type === 'system-init' ? outgoing[0].conversation : '';
    expect([code, stderr, outgoing.at(-1)]).toEqual([
      0,
      '',
      {
        ...{ type: 'result', conversation: session, subtype: 'success', result: 'It counts words.', turns: 2 },
        ...{ costUsd: null, exitReason: 'end_turn' },
      },
    ]);
    expect(outgoing.flatMap((each) => (each.type === 'entry' ? [each.entry] : []))).toEqual(
      await storedEntries(sessions, session),
    );
  });
});

describe('a session that continues', () => {
  test('with -c it is the latest of this directory that has a message', async () => {
    const server = await modelServer(explains, explains);
    const { ended, sessions, cwd, env, root } = await placed(server);
    const none = await ended(['-m', 'm1', '-c', '-p', 'and?']);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining(`none in ${sessions} works in ${cwd}`)]);
    await ended(['run', 'one', '-m', 'm1', '--new', '--session', 's']);
    await ended(['-m', 'm1', '-c', '-p', 'two']);
    expect(server.asked[1]?.messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
      'one',
      'two',
    ]);
    expect((await start(['-m', 'm1', '-c', '-p', 'x', '--cwd', root], { env }).ended).code).toBe(2);
  });

  test('without a prompt there may be nothing to continue, which is printed', async () => {
    const { ended } = await placed(await modelServer(explains));
    await ended(['run', 'one', '-m', 'm1', '--new', '--session', 's']);
    const { code, stdout, stderr } = await ended(['run', '-m', 'm1', '--session', 's']);
    expect([code, stdout, stderr.split('\n')[0]]).toEqual([0, '', 'nothing waits and nothing was interrupted']);
  });

  test('the messages of its queue are answered one after another, and a signal cancels the one under way', async () => {
    const server = await modelServer(says('one'), says('two'), hangs);
    const { ended, cwd, env, sessions } = await placed(server);
    const agent = createAgent({ model: scripted([deaf(t('x'))]), policies: { promoteFollowUpOn: ['completed'] }, cwd });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('s');
    conversation.send('first');
    for (const text of ['second', 'third']) conversation.send(text, { kind: 'followUp' });
    await conversation.cancel();
    const stored = await jsonlStore(sessions).open('s');
    await stored.append(conversation.log(), 0);
    await stored.close();
    const program = start(['run', '-m', 'm1', '--session', 's', '--cwd', cwd], { env });
    await program.says('Let me think');
    program.signal('SIGINT');
    expect((await program.ended).code).toBe(130);
    expect(program.stdout).toBe('one\ntwo\nLet me think\n');
    expect(server.asked.map(({ messages }) => messages.at(-1)?.content)).toEqual(['first', 'second', 'third']);
    expect((await ended(['run', '-m', 'm1', '--session', 's'])).code).toBe(1);
  });

  test.each([[[]], [['--json']]])(
    'a request that is too long for the model continues with a summary %j',
    async (json) => {
      const message =
        "This model's maximum context length is 30000 tokens. However, your messages resulted in 31000 tokens.";
      const tooLong: Script = (reply) =>
        reply.refuse(400, { error: { message, type: 'invalid_request_error', code: 'context_length_exceeded' } });
      const server = await modelServer(readsMainGo, tooLong, says('Summary: main.go was read.'), explains);
      const { ended } = await placed(server);
      const { code, stdout, stderr } = await ended([...json, '-m', 'm1', '-p', QUESTION]);
      expect([code, stdout.includes('It counts words.')]).toEqual([0, true]);
      expect(stderr.includes('! ') && stderr.includes('it takes 30,000 tokens')).toBe(json.length === 0);
      expect(JSON.stringify(server.asked[3]?.messages)).toMatch(/main\.go was read.*Go on with what was asked last/);
    },
  );
});

describe('notes about files and servers', () => {
  test('a server that fails is named after the reply, and with --json nothing is', async () => {
    const { ended, cwd, env } = await placed(await modelServer(explains, explains));
    await writeFile(join(cwd, '.mcp.json'), '{"mcpServers":{"none":{"command":"there-is-no-such-program"}}}');
    await start(['trust', '--cwd', cwd], { env }).ended;
    expect((await ended(['-m', 'm1', '-p', 'hi'])).stderr).toMatch(/^! .*MCP server none/m);
    expect((await ended(['-m', 'm1', '--json', '-p', 'hi'])).stderr).toBe('');
  });
});

describe('usage errors', () => {
  test.each<[string, string[], string, Record<string, string>?]>([
    ['no model', ['run', 'hi'], 'OPENAI_MODEL'],
    ['no key', ['run', 'hi', '-m', 'm1'], 'OPENAI_API_KEY', { OPENAI_API_KEY: '' }],
    ['an unknown option', ['run', 'hi', '--modle', 'm1'], "unknown option '--modle'"],
    ['an unknown command', ['walk'], "unknown command 'walk'. To send it as a message: runchart -p 'walk'"],
    ['no model and no command', [], 'OPENAI_MODEL'],
    ['an invalid directory', ['run', 'hi', '-m', 'm1', '--cwd', 'package.json'], 'is not a directory'],
    ['a missing directory', ['run', 'hi', '-m', 'm1', '--cwd', 'no/such'], 'does not exist'],
    ['no prompt for a new session', ['run', '-m', 'm1', '--new', '--session', 's'], 'give a prompt'],
    ['--new without a name', ['run', 'hi', '-m', 'm1', '--new'], 'give both'],
    ['two sessions', ['-m', 'm1', '-c', '-r', 's', '-p', 'hi'], 'give one of --session, --continue and --resume'],
    ['no name to resume', ['-m', 'm1', '-p', 'hi', '-r'], 'expected --resume to name a session'],
    ['an invalid session id', ['run', 'hi', '-m', 'm1', '--session', '../x'], 'conversation id'],
    ['an unknown session', ['run', 'hi', '-m', 'm1', '--session', 'x'], '--new begins one of that name'],
    ['an invalid limit', ['-m', 'm1', '--max-turns', '0', '-p', 'go'], '--max-turns'],
    ['a budget without prices', ['-m', 'm1', '--max-budget-usd', '1', '-p', 'go'], 'the model m1 has none'],
    ['an invalid mode', ['-m', 'm1', '--permission-mode', 'yolo', '-p', 'go'], 'acceptEdits'],
    ['an invalid rule', ['-m', 'm1', '--allow', 'bash(', '-p', 'go'], 'bash('],
    ['an unknown chart', ['charts', 'NOPE'], 'there is no chart "NOPE"'],
    ['an unknown shell', ['completion', 'tcsh'], 'one of bash, zsh, fish'],
    ['an unknown log', ['replay', 'rnet'], 'there is no file'],
    ['an unknown session to remove', ['rm', 'rnet'], 'there is no session rnet'],
  ])('%s ends with 2 and names the next step', async (_, args, text, variables = {}) => {
    const { env, sessions } = await place({ baseURL: 'http://127.0.0.1:9/v1', asked: [] });
    const { code, stdout, stderr } = await start(args, { env: { ...env, ...variables } }).ended;
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(text)]);
    expect(await sessionsOf(sessions)).toEqual([]);
  });

  test.each([
    [['--help'], 'Usage: runchart'],
    [['run', '--help'], 'Exit codes: 0 completed'],
    [['--version'], /^\d+\.\d+\.\d+\n$/],
  ] as const)('%j is no error', async (args, text) => {
    const { code, stdout, stderr } = await start(args).ended;
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(text);
  });
});

test('sessions, rm and completion work on the sessions of a run', async () => {
  const { ended, env, cwd } = await placed(await modelServer(explains, explains));
  for (const name of ['rent', 'two words']) await ended(['run', 'one', '-m', 'm1', '--new', '--session', name]);
  const outputOf = async (...args: string[]) => {
    const { code, stdout, stderr } = await start(args, { env }).ended;
    return [code, stdout, stderr];
  };
  expect(await outputOf('sessions', '--ids', '--cwd', cwd)).toEqual([0, 'rent\n', '']);
  expect((await outputOf('sessions', '--json', '--all'))[1]).toMatch(/"id":"two words".*\n.*"id":"rent"/);
  expect((await outputOf('completion', 'zsh'))[1]).toContain('compdef _runchart runchart');
  expect(await outputOf('rm', 'rent', 'two words')).toEqual([0, '', 'removed rent\nremoved two words\n']);
  expect(await outputOf('sessions', '--all')).toEqual([0, '', expect.stringMatching(/^no session in /)]);
});
