/**
 * Parts of a connection to an MCP server: the meaning of a failure for a call, the quotations of an error, secret values, and the tools
 * for resources and prompts.
 */
import { describe, expect, it } from 'vitest';
import { McpConnection } from '../../src/mcp/mcpConnection.ts';
import { moreTools } from '../../src/mcp/resourceTools.ts';
import { checkedServer, type McpServerOptions, secretsOf } from '../../src/mcp/serverOptions.ts';
import { definitionOf } from '../../src/tools/tool.ts';

function connectionTo(server: McpServerOptions) {
  const connection = new McpConnection({
    ...{ name: 's', server, delayMs: 3_600_000, ended: () => undefined, toolsChanged: () => undefined },
    elicit: () => ({ action: 'cancel' }),
  });
  connection.ready.catch(() => undefined);
  return connection;
}
const never = () => new Promise<never>(() => undefined);

describe('the failure of a call', () => {
  const failed = (fields: object, error = new Error('it failed')): Error => Object.assign(error, fields);
  it.each([
    ['a closed connection', failed({ code: 'CONNECTION_CLOSED' }), 'ended'],
    ['a stream that broke', failed({ code: -32_099 }), 'cut'],
    ['a pipe that nobody reads', failed({ code: 'EPIPE' }), 'unsent'],
    ['a client that is not connected', failed({ code: 'NOT_CONNECTED' }), 'unsent'],
    ['a transport that is not connected', new Error('Not connected'), 'unsent'],
    ['a session that the server forgot', failed({ status: 404 }), 'unsent'],
    ['a session that the server refuses', failed({ status: 400 }), 'unsent'],
    ['a refusal', failed({ status: 403 }), undefined],
    ['a failure of the server', failed({ status: 500 }), undefined],
    [
      'an address that nobody listens at',
      failed({ cause: { code: 'ECONNREFUSED' } }, new TypeError('fetch failed')),
      'unsent',
    ],
    ['a socket that was cut', failed({ cause: { code: 'ECONNRESET' } }, new TypeError('fetch failed')), 'ended'],
    ['a request that failed without a reason', new TypeError('fetch failed'), 'ended'],
    ['an error that the server answered', failed({ code: -32_602 }), undefined],
    ['a time-out of the protocol', failed({ code: -32_001 }), undefined],
    ['a text', 'no', undefined],
    ['null', null, undefined],
    ['undefined', undefined, undefined],
  ])('%s: %o means %s', async (_, error, loss) => {
    const connection = connectionTo({ transport: never });
    expect(connection.lossOf(error)).toBe(loss);
    await connection.close();
  });
});

describe('the error of a connection', () => {
  const OPTIONS: readonly (readonly [string, McpServerOptions, string])[] = [
    ['a variable of a process', { command: 'x', env: { KEY: 'secret-98765' } }, 'secret-98765'],
    ['a header', { url: 'http://h/', headers: { 'x-key': 'secret-98765' } }, 'secret-98765'],
    ['a token in a header', { url: 'http://h/', headers: { authorization: 'Bearer secret-98765' } }, 'secret-98765'],
    ['a user in an address', { url: 'http://secret-98765@h/' }, 'secret-98765'],
    ['a password in an address', { url: 'http://u:secret-98765@h/' }, 'secret-98765'],
    ['an escaped password', { url: 'http://u:secret%2F98765@h/' }, 'secret/98765'],
    ['the same as it is escaped', { url: 'http://u:secret%2F98765@h/' }, 'secret%2F98765'],
    ['a value of a query', { url: new URL('http://h/?a=1&key=secret-98765') }, 'secret-98765'],
  ];
  it.each(OPTIONS)('does not contain %s, wherever the cause quotes it', async (_, options, secret) => {
    expect(secretsOf(options)).toContain(secret);
    const connection = connectionTo(options);
    const { message, code } = connection.error('failed', new Error(`before ${secret} after`));
    expect([message, code]).toEqual([expect.stringMatching(/^the MCP server s failed: .*before .* after$/), 'mcp']);
    expect(message).not.toContain(secret);
    await connection.close();
  });

  it('has no sequences for terminals and no control characters, keeps lines, and is bounded', async () => {
    const connection = connectionTo({ transport: never });
    const textOf = (words: string): string =>
      connection.error('failed', new Error(words)).message.replace(/^.*? failed: /s, '');
    for (const [words, shown] of [
      ['\u001b[31mred\u001b[0m', 'red'],
      ['\u001b]0;title\u0007words', 'words'],
      ['\u001b]0;title\u001b\\words', 'words'],
      ['a\r\nb\tc', 'a\nb\tc'],
      ['a\u0000\u0008\u007f\u009bb', 'ab'],
    ] as const)
      expect(textOf(words)).toContain(shown);
    expect(textOf('a\u202eb')).not.toContain('\u202e');
    expect(textOf('x'.repeat(5_000)).length).toBeLessThanOrEqual(1_000);
    expect(textOf('x'.repeat(500))).toContain('x'.repeat(500));
    expect(textOf(`${'x'.repeat(600)}${'🎉'.repeat(400)}`)).not.toMatch(/\p{Surrogate}/u);
    expect(textOf(`${'x'.repeat(601)}${'🎉'.repeat(400)}`)).not.toMatch(/\p{Surrogate}/u);
    await connection.close();
  });

  it('contains no part of a secret at the end of its first 1,000 characters, and none whose parts a control character separates', async () => {
    const secret = 'secret-98765';
    const connection = connectionTo({ command: 'x', env: { KEY: secret } });
    const textOf = (words: string): string => connection.error('failed', new Error(words)).message;
    for (let before = 975; before <= 1_005; before++)
      expect([before, textOf(`${'x'.repeat(before)}${secret} after`).includes('sec')]).toEqual([before, false]);
    for (const mark of ['\u0000', '\u001b[0m', '\u0007', '\u001b]0;t\u0007'])
      for (const at of [1, 6, 11]) {
        const shown = textOf(`before ${secret.slice(0, at)}${mark}${secret.slice(at)} after`);
        expect([mark, at, shown]).toEqual([mark, at, expect.stringMatching(/before \[redacted\] after$/)]);
      }
    await connection.close();
  });

  it('a server by its transport has no secrets, and a process without variables neither', () => {
    expect(secretsOf({ transport: never })).toEqual([]);
    expect(secretsOf({ command: 'x', args: ['--key'] })).toEqual([]);
  });
});

describe('options that reach a server', () => {
  const token = { token: async () => 'x' };
  const oauth = { tokens: () => undefined };
  it.each([
    { command: 'x' },
    { command: 'x', args: [], env: {}, cwd: '/', resources: true, prompts: false },
    { url: 'http://h' },
    { url: 'https://h/p?q=1', headers: { a: 'b' }, resources: false, prompts: true },
    { url: new URL('https://h') },
    { url: 'http://h', authProvider: token },
    { url: 'http://h', authProvider: oauth },
    { transport: never, resources: true },
  ])('%o are taken as they are', (options) => {
    expect(checkedServer('s', options)).toEqual(options);
    expect(checkedServer('s', { ...options, more: undefined })).toEqual(options);
  });

  it.each([
    { command: '' },
    { command: 'x', cwd: '' },
    { command: 'x', args: [1] },
    { command: 'x', env: { A: undefined } },
    { command: 'x', resources: 'yes' },
    { url: 'http://h', prompts: 1 },
    { url: 'h' },
    { url: 'file:///etc/passwd' },
    { url: 'http://h', headers: { a: 1 } },
    { url: 'http://h', cwd: '/' },
    { transport: 'stdio' },
    { transport: never, headers: {} },
    { command: 'x', transport: never },
    {},
    [],
    null,
    'x',
  ])('%o are refused', (options) => {
    expect(() => checkedServer('s', options)).toThrow(expect.objectContaining({ code: 'configuration' }));
  });
});

describe('the tools for resources and prompts', () => {
  const context = { signal: new AbortController().signal };
  type Asked = [method: string, params: unknown, options: unknown];

  async function run(tool: string, args: object, answers: { [method: string]: unknown }) {
    const asked: Asked[] = [];
    const answer = (method: string) => async (params: unknown, options: unknown) => {
      asked.push([method, params, options]);
      if (answers[method] instanceof Error) throw answers[method];
      return answers[method];
    };
    const methods = ['listResources', 'listResourceTemplates', 'readResource', 'listPrompts', 'getPrompt'];
    const client = Object.fromEntries(methods.map((method) => [method, answer(method)]));
    const signals: unknown[] = [];
    const read = (signal: AbortSignal, request: (client: object, signal: AbortSignal) => unknown) => {
      signals.push(signal);
      return request(client, signal);
    };
    const all = { resources: true, prompts: true } as McpServerOptions;
    const { tools } = moreTools({ name: 's', read } as never, all, { resources: {}, prompts: {} } as never);
    const definition = definitionOf(tools.find(({ name }) => name === `mcp__s__${tool}`) as never);
    const result = await definition?.execute(args as never, context as never);
    expect(signals).toEqual([context.signal]);
    for (const [, , options] of asked) expect(options).toEqual({ signal: context.signal });
    return { result, asked: asked.map(([method, params]) => [method, params]), definition };
  }
  const NONE = { resourceTemplates: [] };

  it.each<[string, object, { [method: string]: unknown }, unknown]>([
    [
      'list_resources',
      {},
      { listResources: { resources: [] }, listResourceTemplates: NONE },
      'The server has no resources.',
    ],
    ['list_prompts', {}, { listPrompts: { prompts: [] } }, 'The server has no prompts.'],
    [
      'list_resources',
      {},
      {
        listResources: {
          resources: [
            { uri: 'a:1', name: 'one', description: 'The\n\tfirst', mimeType: 'a/b' },
            { uri: 'a:2', name: '' },
          ],
        },
        listResourceTemplates: new Error('unknown method'),
      },
      'a:1 - one - The first - a/b\na:2',
    ],
    [
      'list_resources',
      {},
      {
        listResources: { resources: [] },
        listResourceTemplates: {
          resourceTemplates: [{ uriTemplate: 'a:{n}', name: 'any', description: 'one of them' }],
        },
      },
      'a:{n} - any (a template) - one of them',
    ],
    [
      'list_prompts',
      {},
      {
        listPrompts: {
          prompts: [
            {
              name: 'p',
              description: 'Sums',
              arguments: [{ name: 'a', required: true }, { name: 'b', required: false }, { name: 'c' }],
            },
            { name: 'q' },
          ],
        },
      },
      'p(a, b?, c?) - Sums\nq()',
    ],
    [
      'read_resource',
      { uri: 'a:1' },
      {
        readResource: {
          contents: [
            { uri: 'a:1', text: 'in it' },
            { uri: 'a:2', blob: 'aGk=', mimeType: 'a/b' },
            { uri: 'a:3', text: 'svg', mimeType: 'image/svg+xml' },
          ],
        },
      },
      [
        { type: 'text', text: 'in it' },
        { type: 'text', text: '[a/b at a:2]' },
        { type: 'text', text: 'svg' },
      ],
    ],
    [
      'get_prompt',
      { name: 'p' },
      {
        getPrompt: {
          messages: [
            { role: 'user', content: { type: 'text', text: 'Do' } },
            { role: 'assistant', content: { type: 'resource_link', name: 'n', uri: 'a:1' } },
          ],
        },
      },
      [
        { type: 'text', text: 'user:' },
        { type: 'text', text: 'Do' },
        { type: 'text', text: 'assistant:' },
        { type: 'text', text: '[n at a:1]' },
      ],
    ],
  ])('%s with %j, of %j', async (tool, args, answers, expected) => {
    expect((await run(tool, args, answers)).result).toEqual(expected);
  });

  it.each([3, 100])('a list of 3 has nothing from %i on, and contains its length', async (from) => {
    const resources = ['a:1', 'a:2', 'a:3'].map((uri) => ({ uri, name: 'n' }));
    const answers = { listResources: { resources }, listResourceTemplates: NONE };
    expect((await run('list_resources', { from }, answers)).result).toBe(
      `The server has 3 resources. There is none from ${from} on.`,
    );
  });

  it('pass on what the model asks for, and nothing else', async () => {
    const readResource = { contents: [] };
    const getPrompt = { messages: [] };
    expect((await run('read_resource', { uri: 'a:1' }, { readResource })).asked).toEqual([
      ['readResource', { uri: 'a:1' }],
    ]);
    expect((await run('get_prompt', { name: 'p' }, { getPrompt })).asked).toEqual([['getPrompt', { name: 'p' }]]);
    const filled = { name: 'p', arguments: { a: 'b' } };
    expect((await run('get_prompt', filled, { getPrompt })).asked).toEqual([['getPrompt', filled]]);
  });

  it.each([499, 500, 501, 5_000])('an entry of %i characters is one line of at most 500', async (length) => {
    const entry = `a:${'x'.repeat(length - 2)}`;
    const answers = { listResources: { resources: [{ uri: entry, name: '' }] }, listResourceTemplates: NONE };
    expect((await run('list_resources', {}, answers)).result).toBe(entry.slice(0, 500));
  });

  it('an entry that is cut has no half of a character at its end', async () => {
    const uri = `a:${'x'.repeat(497)}`;
    const answers = { listResources: { resources: [{ uri: `${uri}🎉`, name: '' }] }, listResourceTemplates: NONE };
    expect((await run('list_resources', {}, answers)).result).toBe(uri);
  });

  it('only read, and may run again after a crash', async () => {
    for (const tool of ['list_resources', 'read_resource', 'list_prompts', 'get_prompt']) {
      const answers = {
        listResources: { resources: [] },
        listResourceTemplates: NONE,
        listPrompts: { prompts: [] },
        readResource: { contents: [] },
        getPrompt: { messages: [] },
      };
      const { definition } = await run(tool, { uri: 'a', name: 'p' }, answers);
      expect(definition).toMatchObject({ name: `mcp__s__${tool}`, readOnly: true, idempotent: true });
      expect(definition?.description).toMatch(/ s[: .]/);
    }
  });

  it.each(
    [undefined, false, true].flatMap((resources) => [undefined, false, true].map((prompts) => [resources, prompts])),
  )('are there where resources is %s and prompts is %s, and the server has them', (resources, prompts) => {
    for (const capabilities of [undefined, {}, { resources: {} }, { prompts: {} }, { resources: {}, prompts: {} }]) {
      const { tools, left } = moreTools({ name: 's' } as never, { resources, prompts } as never, capabilities as never);
      const has = (kind: 'resources' | 'prompts'): boolean => capabilities !== undefined && kind in capabilities;
      expect(tools.map(({ name }) => name)).toEqual([
        ...(resources && has('resources') ? ['mcp__s__list_resources', 'mcp__s__read_resource'] : []),
        ...(prompts && has('prompts') ? ['mcp__s__list_prompts', 'mcp__s__get_prompt'] : []),
      ]);
      expect(left).toEqual([
        ...(resources && !has('resources')
          ? [{ server: 's', tool: 'resources', why: 'the server has no resources' }]
          : []),
        ...(prompts && !has('prompts') ? [{ server: 's', tool: 'prompts', why: 'the server has no prompts' }] : []),
      ]);
    }
  });
});
