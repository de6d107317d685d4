/** MCP servers that die: at their start, between calls and in calls, as real processes that are killed. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import { type McpServerOptions, mcpTools } from '../../src/mcp/mcpTools.ts';
import { bench } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';
import { isAlive, isGone, stdioServer } from './stdioServer.ts';

const messageOf = (made: Promise<unknown>): Promise<string> =>
  made.then(
    () => 'connected',
    (error: Error) => error.message,
  );

async function serving(server: ReturnType<typeof stdioServer>, names: readonly (readonly string[])[], more = {}) {
  const mcp = await mcpTools({ s: { ...server.options, ...more } });
  onTestFinished(() => mcp.close());
  const rounds = names.map((round, at) => round.map((name, index) => call(`c${at}${index}`, `mcp__s__${name}`)));
  const made = await bench({ tools: mcp.tools, replies: [...rounds, 'done'] });
  onTestFinished(() => made.agent.close());
  return { ...made, mcp };
}
const resultsIn = (log: readonly LogEntry[]) =>
  log.flatMap((entry) =>
    entry.type === 'tool-result' ? [{ ...entry, text: JSON.stringify(entry.content.map((part) => part)) }] : [],
  );

it.each([5, null, 'npx', []])('servers that are %j are refused', async (servers) => {
  await expect(mcpTools(servers as never)).rejects.toMatchObject({ code: 'configuration' });
});

describe('options of a server', () => {
  const refusals: [string, object, RegExp][] = [
    [
      'a slip',
      { command: 'x', arg: [] },
      /the MCP server s: the option arg is unknown; known are command, args, env, cwd/,
    ],
    ['no kind', { comand: 'x' }, /needs one of the options command, url and transport; got comand/],
    [
      'two kinds',
      { command: 'x', url: 'http://a' },
      /needs one of the options command, url and transport; got command, url/,
    ],
    [
      'an option of another kind',
      { url: 'http://a', env: {} },
      /the option env is unknown; known are url, headers, auth/,
    ],
    ['a wrong type', { command: 'x', args: 'y' }, /s: args must be a list of strings/],
    ['an address of another kind', { url: 'ftp://a' }, /s: url must be an http or https address/],
    [
      'a value that may be secret',
      { command: 'x', env: { KEY: 7 } },
      /env must be an object of strings, got a value of type object/,
    ],
    ['a provider of nothing', { url: 'http://a', authProvider: {} }, /authProvider must be an OAuthClientProvider/],
  ];
  it.each(refusals)('%s is refused by name', async (_, options, message) => {
    const made = mcpTools({ s: options as McpServerOptions });
    await expect(made).rejects.toMatchObject({ code: 'configuration', message: expect.stringMatching(message) });
  });

  it('an undefined option counts as absent', async () => {
    const { options } = stdioServer();
    const mcp = await mcpTools({ s: { ...options, cwd: undefined, url: undefined } as unknown as McpServerOptions });
    await mcp.close();
  });
});

describe('a server that dies at its start', () => {
  it('the error names it, the code of its end and the end of its stderr', async () => {
    const { options } = stdioServer({ diesAtStart: true, stderr: 'Error: no database at /srv\n' });
    const message = await messageOf(mcpTools({ notes: options }));
    expect(message).toMatch(
      /^the MCP server notes cannot be reached: .*; it ended with code 3; its stderr ends with:\n/,
    );
    expect(message).toMatch(/\nError: no database at \/srv$/);
  });

  it('the quotation is bounded, and has neither control characters nor values of `env`', async () => {
    const long = Array.from({ length: 500 }, (_, line) => `line ${line} of a long report`).join('\n');
    const stderr = `${long}\n\u001b[31mred\u001b[0m \u0007bell \u001b]0;title\u0007 \u202ekey {key}\r\n`;
    const { options } = stdioServer({ diesAtStart: true, stderr });
    const message = await messageOf(mcpTools({ s: { ...options, env: { KEY: 's3cret-value', LEVEL: '1' } } }));
    expect(message.length).toBeLessThan(2_300);
    expect(message).toMatch(/\nline 499 of a long report\nred bell {2}\\u202ekey \[redacted\]$/);
    expect(message.split('\n')[1]).toMatch(/^line \d+ of a long report$/);
  });

  it('the quotation begins with a whole line, so it has no end of a secret', async () => {
    // 8,192 characters of these lines begin within a value. Without their colours, all of them fit into the quotation.
    const stderr = `{key}${'\u001b[0m'.repeat(19)}\n`.repeat(200);
    const { options } = stdioServer({ diesAtStart: true, stderr });
    const message = await messageOf(mcpTools({ s: { ...options, env: { KEY: 's3cret-value-0123456789' } } }));
    expect(message).toContain('[redacted]\n[redacted]');
    expect(message).not.toContain('0123456789');
  });

  it('a command that does not exist is named', async () => {
    expect(await messageOf(mcpTools({ s: { command: '/nowhere/at-all' } }))).toMatch(/cannot be reached: .*ENOENT/);
  });
});

describe('a server that dies in a call', () => {
  it('the result contains that the effect is uncertain, how the process ended and what it wrote', async () => {
    const server = stdioServer({ tools: ['die'], stderr: 'out of memory\n' });
    const { conversation } = await serving(server, [['die']]);
    await conversation.send('go').result;
    const [result] = resultsIn(conversation.log());
    expect(result).toMatchObject({ outcome: 'failed' });
    expect(result?.text).toMatch(/nobody knows whether the call had an effect/);
    expect(result?.text).toMatch(/it was ended by SIGKILL; its stderr ends with:\\nout of memory/);
    expect(server.calls()).toEqual(['die']);
  });

  it('a call that only reads is made again once, by a new process', async () => {
    const annotations = { readOnlyHint: true };
    const server = stdioServer({
      tools: [
        { name: 'dieOnce', annotations },
        { name: 'die', annotations },
      ],
    });
    const { conversation } = await serving(server, [['dieOnce'], ['die']]);
    await conversation.send('go').result;
    const [once, always] = resultsIn(conversation.log());
    expect(once?.text).toContain('alive');
    expect(always).toMatchObject({ outcome: 'failed' });
    expect(server.calls()).toEqual(['dieOnce', 'dieOnce', 'die', 'die']);
  });
});

describe('a server that died', () => {
  it('the next call starts it again', async () => {
    const server = stdioServer();
    const { conversation } = await serving(server, [['pid']]);
    const [first = 0] = server.starts();
    process.kill(first, 'SIGKILL');
    await expect.poll(() => isGone(first)).toBe(true);
    await conversation.send('go').result;
    const [, second] = server.starts();
    expect(resultsIn(conversation.log())).toMatchObject([
      { outcome: 'succeeded', content: [{ text: String(second) }] },
    ]);
  });

  it('attempts that follow failures wait longer and longer, and an answer ends that', async () => {
    const server = stdioServer({ startsMax: 1 });
    const mcp = await mcpTools({ s: server.options });
    onTestFinished(() => mcp.close());
    const [first = 0] = server.starts();
    process.kill(first, 'SIGKILL');
    await expect.poll(() => isGone(first)).toBe(true);
    const rounds = Array.from({ length: 3 }, (_, at) => [call(`c${at}`, 'mcp__s__pid')]);
    const { conversation, agent } = await bench({ tools: mcp.tools, replies: [...rounds, 'done'] });
    onTestFinished(() => agent.close());
    const waits: number[] = [];
    const setTimer = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((act: () => void, ms = 0) => {
      if (ms > 300 && ms <= 4_000 && ms !== 1_000) waits.push(ms);
      return realTimer(act, ms > 300 && ms !== 1_000 ? 1 : ms);
    }) as typeof setTimeout);
    onTestFinished(() => setTimer.mockRestore());
    await conversation.send('go').result;
    expect(resultsIn(conversation.log()).every(({ text }) => text.includes('cannot be reached'))).toBe(true);
    expect(waits.map((ms) => Math.round(ms / 500) * 500)).toEqual([500, 1_000]);
  });

  it('a pause before an attempt ends when the call is cancelled, and when the servers are closed', async () => {
    const server = stdioServer({ startsMax: 0 });
    for (const way of ['cancel', 'close']) {
      const { McpServer } = await import('../../src/mcp/mcpServer.ts');
      const made = new McpServer('s', server.options);
      for (let time = 0; time < 3; time += 1) await made.tools().catch(() => undefined);
      const abort = new AbortController();
      const begun = performance.now();
      const read = made
        .read(abort.signal, async () => 'read')
        .then(
          () => 'read',
          () => 'ended',
        );
      if (way === 'cancel') abort.abort();
      await made.close();
      expect(await read).toBe('ended');
      expect(performance.now() - begun).toBeLessThan(800);
    }
  });
});
const realTimer = setTimeout;

describe('the processes of a server', () => {
  it.each(['close', 'death'] as const)('after its %s no process of its tree runs', async (end) => {
    const server = stdioServer({ child: true, staysAfterInput: true });
    const mcp = await mcpTools({ s: server.options });
    const [parent = 0] = server.starts();
    const [child = 0] = server.children();
    expect([isAlive(parent), isAlive(child)]).toEqual([true, true]);
    if (end === 'close') await mcp.close();
    else process.kill(parent, 'SIGKILL');
    await expect.poll(() => [isAlive(parent), isAlive(child)], { timeout: 5_000 }).toEqual([false, false]);
    await mcp.close();
  });
});

// The last one: modules that are loaded after it are others.
it('a missing package is one sentence with the command that installs it', async () => {
  vi.resetModules();
  vi.doMock('@modelcontextprotocol/client', () => {
    throw new Error('not found');
  });
  onTestFinished(() => {
    vi.doUnmock('@modelcontextprotocol/client');
    vi.resetModules();
  });
  const { mcpTools: made } = await import('../../src/mcp/mcpTools.ts');
  await expect(made({ s: { url: 'http://127.0.0.1:9/mcp' } })).rejects.toMatchObject({
    code: 'mcp',
    message: 'mcpTools needs the package @modelcontextprotocol/client: npm install @modelcontextprotocol/client',
  });
});
