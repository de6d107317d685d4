/** `runchart -p` and the commands for sessions as processes, as scripts use them. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Outgoing } from '../../src/transports/index.ts';
import { proves } from '../support/tier.ts';
import { mainWithPackages, start, storedEntries } from './cli.ts';
import { type Asked, modelServer, type Script } from './modelServer.ts';
import { entriesIn, explains, place, QUESTION, readsMainGo } from './runDirectory.ts';

const runs =
  (command: string): Script =>
  (reply) => {
    reply.call('call_1', 'Bash', JSON.stringify({ command }));
    reply.finish('tool_calls');
  };

/** The built program with the list of prices. OpenAI's servers have this address in it. */
const mainWithPrices = (root: string, baseURL: string): Promise<string> =>
  mainWithPackages(
    root,
    ['@pydantic/genai-prices'],
    `const { fetch } = globalThis;
     globalThis.fetch = (at, init) => fetch(String(at.url ?? at).replace('https://api.openai.com/v1', ${JSON.stringify(baseURL)}), init);`,
  );

describe('runchart -p', () => {
  test('S002-17 a spent budget ends with 5, in the message and in the session', async () => {
    const server = await modelServer(readsMainGo, explains);
    const { root, cwd, env: environment, sessions } = await place(server);
    const { OPENAI_BASE_URL: _, ...env } = environment;
    const main = await mainWithPrices(root, server.baseURL);
    const args = ['-m', 'gpt-4o-mini', '--max-budget-usd', '0.00001', '-p', 'go'];
    const program = start(args, { cwd, env, main });
    expect(await program.ended).toEqual({ code: 5, signal: null });
    expect(program.stderr).toContain('max_budget');
    expect(server.asked).toHaveLength(1);
    const [id = ''] = (await readdir(sessions)).filter((name) => name.endsWith('.jsonl'));
    const entries = await storedEntries(sessions, id.slice(0, -'.jsonl'.length));
    const stop = entries.find(({ type }) => type === 'run-stop');
    expect(stop).toMatchObject({ reason: 'error', cause: 'max_budget' });
  });

  test('a request that is too long for the model goes on with a summary, and .mcp.json counts after trust', async () => {
    const tooLong: Script = (reply) =>
      reply.refuse(400, {
        error: {
          message:
            "This model's maximum context length is 30000 tokens. However, your messages resulted in 31000 tokens.",
          type: 'invalid_request_error',
          code: 'context_length_exceeded',
        },
      });
    const sumsUp: Script = (reply) => {
      reply.text('Summary of the conversation so far: main.go was read.');
      reply.finish('stop');
    };
    const server = await modelServer(readsMainGo, tooLong, sumsUp, explains);
    const { cwd, root, env: environment } = await place(server);
    const env = { ...environment, XDG_CONFIG_HOME: join(root, 'config') };
    await writeFile(join(cwd, '.mcp.json'), '{"mcpServers":{"none":{"command":"there-is-no-such-program"}}}');
    const trusted = start(['trust'], { cwd, env });
    expect(await trusted.ended).toEqual({ code: 0, signal: null });
    expect(trusted.stdout).toContain('starts from now on: the MCP server none: there-is-no-such-program');
    const program = start(['-m', 'm1', '-p', ...QUESTION.split(' ')], { cwd, env });
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stderr).toContain('it takes 30,000 tokens: earlier messages are summed up, and the request goes on');
    expect(program.stderr).toMatch(/! .*MCP server none|! .*@modelcontextprotocol\/client/);
    expect(program.stdout).toContain('It counts words.');
    expect(server.asked[2]?.tools ?? []).toEqual([]);
    expect(JSON.stringify(server.asked[3]?.messages)).toMatch(/main\.go was read.*Go on with what was asked last/);
  });

  test('a prompt of one word may follow other options', async () => {
    const server = await modelServer(explains);
    const { cwd, env } = await place(server);
    const program = start(['-p', '-m', 'm1', 'explain'], { cwd, env });
    expect(await program.ended).toEqual({ code: 0, signal: null });
    expect(program.stdout).toContain('It counts words.');
    expect(JSON.stringify(server.asked[0]?.messages)).toContain('explain');
  });

  test('TRC-14 prints the reply alone, --json prints the events of a transport, and -c continues the session', async () => {
    const server = await modelServer(readsMainGo, explains, explains);
    const { cwd, env, sessions } = await place(server);
    const first = start(['-m', 'm1', '--json', '-p', ...QUESTION.split(' ')], { cwd, env });
    expect(await first.ended).toEqual({ code: 0, signal: null });
    const outgoing = entriesIn(first.stdout) as Outgoing[];
    const session = outgoing[0]?.type === 'system-init' ? outgoing[0].conversation : '';
    expect(outgoing[0]).toMatchObject({ version: 1, cwd, model: 'm1', permissionMode: 'default' });
    expect(outgoing.flatMap((each) => (each.type === 'entry' ? [each.entry] : []))).toEqual(
      await storedEntries(sessions, session),
    );
    const text = outgoing.flatMap((each) =>
      each.type === 'live' && each.signal.type === 'text-delta' ? [each.signal.text] : [],
    );
    expect(text.join('')).toBe("I'll read the file.It counts words.");
    expect(outgoing.at(-1)).toEqual({
      type: 'result',
      conversation: session,
      subtype: 'success',
      result: 'It counts words.',
      turns: 2,
      costUsd: null,
      exitReason: 'end_turn',
    });
    const second = start(['-m', 'm1', '-c', '-p', 'and', 'why?'], { cwd, env, input: 'a file\n' });
    expect(await second.ended).toEqual({ code: 0, signal: null });
    expect(second.stdout).toBe('It counts words.\n');
    expect(second.stderr).toContain(`session ${session}`);
    const users = server.asked[2]?.messages.filter(({ role }) => role === 'user');
    expect(users?.map(({ content }) => content)).toEqual([QUESTION, 'and why?\n\na file']);
  });

  test('without a terminal a call that needs approval is denied, and the message contains the rule that allows it', async () => {
    const command = "touch 'made by it'";
    const server = await modelServer(runs(command), explains, runs(command), explains, runs(command), explains);
    const { cwd, env, sessions } = await place(server);
    const denied = start(['-m', 'm1', '-p', 'make it'], { cwd, env });
    expect(await denied.ended).toEqual({ code: 0, signal: null });
    expect(denied.stderr).toContain('! Bash is denied, since there is no terminal to ask on');
    expect(String(server.asked[1]?.messages.at(-1)?.content)).toContain('nobody can be asked here');
    expect(existsSync(join(cwd, 'made by it'))).toBe(false);
    const [, hint = ''] = /this would allow it: (--allow .*)/.exec(denied.stderr) ?? [];
    const [, rule = ''] = execFileSync('sh', ['-c', `printf '%s\\n' ${hint}`], { encoding: 'utf8' }).split('\n');
    const both = start(['-m', 'm1', '--allow', rule, '--deny', 'bash(touch *)', '-p', 'make it'], { cwd, env });
    expect((await both.ended).code).toBe(0);
    expect(existsSync(join(cwd, 'made by it'))).toBe(false);
    const allowed = start(['-m', 'm1', '--store', join(cwd, '..', 'other'), '--allow', rule, '-p', 'make it'], {
      cwd,
      env,
    });
    expect((await allowed.ended).code).toBe(0);
    expect(existsSync(join(cwd, 'made by it'))).toBe(true);
    const other = await readdir(join(cwd, '..', 'other'));
    expect(other.filter((name) => name.endsWith('.jsonl'))).toHaveLength(1);
    expect((await readdir(sessions)).filter((name) => name.endsWith('.jsonl'))).toHaveLength(2);
  });

  test('commands in the background end with the program: each is named with its unread output, and the next request contains that', async () => {
    const background: Script = (reply) => {
      for (const [index, command] of ['echo ready; sleep 60', 'echo done'].entries()) {
        const args = JSON.stringify({ command, run_in_background: true });
        reply.delta({
          tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'Bash', arguments: args } }],
        });
      }
      reply.finish('tool_calls');
    };
    const [quick, slow] = [
      /· bash_\w+ echo done: exit code 0\n/,
      /! (bash_\w+) echo ready; sleep 60: it ends now, because the program ends\n {2}ready\n/,
    ];
    const waits: Script = async (reply) => {
      await expect.poll(() => first.stderr).toMatch(quick);
      return explains(reply, server.asked[1] as Asked);
    };
    const server = await modelServer(background, waits, explains);
    const { cwd, env } = await place(server);
    const options = ['-m', 'm1', '--permission-mode', 'bypass', '-p'];
    const first = start([...options, 'serve it'], { cwd, env });
    expect((await first.ended).code).toBe(0);
    expect(first.stdout).toBe('It counts words.\n');
    expect(first.stderr).toMatch(slow);
    const [, id = ''] = slow.exec(first.stderr) ?? [];
    const second = start([...options, 'and now?', '-c'], { cwd, env });
    expect((await second.ended).code).toBe(0);
    expect(JSON.stringify(server.asked[2]?.messages.at(-1))).toContain(`The background command ${id} (`);
  });

  test.skipIf(!proves)(
    'S002-16 a reached limit of turns ends with 4, and invalid limits, modes and rules with 2',
    async () => {
      const { cwd, env } = await place(await modelServer(readsMainGo));
      const program = start(['-m', 'm1', '--max-turns', '1', '-p', 'go'], { cwd, env });
      expect(await program.ended).toEqual({ code: 4, signal: null });
      const wrong: [string[], string][] = [
        [['--max-turns', '0'], '--max-turns'],
        [['--max-budget-usd', '1'], 'the model m1 has none'],
        [['--permission-mode', 'yolo'], 'acceptEdits'],
        [['--allow', 'bash('], 'bash('],
      ];
      for (const [options, message] of proves ? wrong : wrong.slice(-1)) {
        const refused = start(['-m', 'm1', ...options, '-p', 'go'], { cwd, env });
        expect(await refused.ended).toEqual({ code: 2, signal: null });
        expect(refused.stderr).toContain(message);
      }
    },
  );
});

if (proves)
  test('sessions, rm and completion are commands', async () => {
    const { cwd, env } = await place(await modelServer(explains));
    expect((await start(['run', 'one', '-m', 'm1', '--new', '--session', 'rent'], { cwd, env }).ended).code).toBe(0);
    const outputOf = async (...words: string[]) => {
      const program = start(words, { cwd, env });
      const { code } = await program.ended;
      return [code, program.stdout, program.stderr];
    };
    expect(await outputOf('sessions', '--ids')).toEqual([0, 'rent\n', '']);
    expect((await outputOf('completion', 'zsh'))[1]).toContain('compdef _runchart runchart');
    expect(await outputOf('rm', 'rent')).toEqual([0, '', 'removed rent\n']);
    expect(await outputOf('sessions', '--ids')).toEqual([0, '', '']);
  });
