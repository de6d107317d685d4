/** A server's description of its tools and its answers to calls, as a model and a log receive them. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Decision } from '../../src/index.ts';
import { McpServer } from '../../src/mcp/mcpServer.ts';
import { mcpTools } from '../../src/mcp/mcpTools.ts';
import { definitionOf } from '../../src/tools/tool.ts';
import { bench } from '../support/agentBench.ts';
import { wav } from '../support/sampleFiles.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';
import { callOf, serverByHand } from './serverByHand.ts';

const begins = (begun: readonly unknown[], count = 1) => expect.poll(() => begun.length, { interval: 1 }).toBe(count);

describe('listed tools of a server', () => {
  const listed = async (...tools: readonly (string | object)[]) => {
    const { transport } = serverByHand(tools);
    const made = await mcpTools({ s: { transport } });
    await made.close();
    return made;
  };

  it('each character of a name that providers refuse becomes an underscore', async () => {
    const { tools } = await listed('a.b/c d', 'A-1_z', 'ö');
    expect(tools.map(({ name }) => name)).toEqual(['mcp__s__a_b_c_d', 'mcp__s__A-1_z', 'mcp__s___']);
  });

  it('names have at most 64 characters including the prefix, and a tool with a longer one is skipped and reported', async () => {
    const longest = 'x'.repeat(64 - 'mcp__s__'.length);
    const { tools, left } = await listed(longest, `${longest}y`);
    expect(tools.map(({ name }) => name)).toEqual([`mcp__s__${longest}`]);
    expect(left).toEqual([{ server: 's', tool: `${longest}y`, why: expect.stringContaining('(64)') }]);
  });

  it('descriptions have at most 4,096 characters, and a missing one is empty', async () => {
    const { tools } = await listed({ name: 'a', description: 'd'.repeat(4_097) }, 'b');
    expect(tools.map(({ description }) => description)).toEqual(['d'.repeat(4_096), '']);
    const whole = 'd'.repeat(4_095);
    const cut = await listed({ name: 'a', description: `${whole}🎉` });
    expect(cut.tools.map(({ description }) => description)).toEqual([whole]);
  });

  it.each([
    [undefined, false],
    [{}, false],
    [{ readOnlyHint: false, idempotentHint: true }, false],
    [{ readOnlyHint: true }, true],
  ])(
    'tools with the annotations %j are read-only, and may run again after a crash: %s',
    async (annotations, expected) => {
      const { tools } = await listed({ name: 'a', ...(annotations && { annotations }) });
      const { readOnly, idempotent } = tools.map(definitionOf)[0] ?? {};
      expect({ readOnly, idempotent }).toEqual({ readOnly: expected, idempotent: expected });
    },
  );

  it.each([
    ['forbidden', true],
    ['optional', true],
    ['required', false],
  ])('tools with tasks %s are offered to a model: %s', async (taskSupport, expected) => {
    const { tools, left } = await listed({ name: 'a', execution: { taskSupport } });
    expect([tools.length, left.length]).toEqual(expected ? [1, 0] : [0, 1]);
  });

  it('a tool with an invalid schema is skipped and reported, and the others are offered', async () => {
    const { tools, left } = await listed({ name: 'a', inputSchema: { type: 'object', $ref: '#/nowhere' } }, 'b');
    expect(tools.map(({ name }) => name)).toEqual(['mcp__s__b']);
    expect(left).toMatchObject([{ tool: 'a' }]);
  });
});

describe('the name of a server', () => {
  it.each([
    ['a', true],
    ['A-9', true],
    ['x'.repeat(24), true],
    ['', false],
    ['a_b', false],
    ['a b', false],
    ['x'.repeat(25), false],
  ])('%j is accepted: %s', async (name, isTaken) => {
    const { transport } = serverByHand();
    const made = mcpTools({ [name]: { transport } });
    if (!isTaken) return expect(made).rejects.toMatchObject({ code: 'configuration' });
    await (await made).close();
  });
});

describe('the answer to a call', () => {
  const text = (words: string) => ({ type: 'text', text: words });
  const image = { type: 'image', mimeType: 'image/png', data: base64(dot) };

  it.each<[string, object, string, unknown[]]>([
    ['texts, in order', { content: [text('a'), text('b')] }, 'succeeded', [text('a'), text('b')]],
    [
      'an image',
      { content: [image] },
      'succeeded',
      [{ type: 'image', mediaType: 'image/png', data: expect.stringContaining('blob:') }],
    ],
    [
      'the text of a resource',
      { content: [{ type: 'resource', resource: { uri: 'f:a', text: 'in it' } }] },
      'succeeded',
      [text('in it')],
    ],
    [
      'the kind and place of a resource of bytes',
      { content: [{ type: 'resource', resource: { uri: 'f:a', blob: 'aGk=', mimeType: 'a/b' } }] },
      'succeeded',
      [text('[a/b at f:a]')],
    ],
    [
      'the place of bytes without a kind',
      { content: [{ type: 'resource', resource: { uri: 'f:a', blob: 'aGk=' } }] },
      'succeeded',
      [text('[bytes at f:a]')],
    ],
    [
      'the name and place of a link',
      { content: [{ type: 'resource_link', name: 'n', uri: 'f:a' }] },
      'succeeded',
      [text('[n at f:a]')],
    ],
    [
      'a sound, as a file',
      { content: [text('Heard:'), { type: 'audio', mimeType: 'audio/wav', data: base64(wav) }] },
      'succeeded',
      [text('Heard:'), { type: 'file', mediaType: 'audio/wav', data: expect.stringContaining('blob:') }],
    ],
    [
      'the kind of a sound that is no base64, and the rest',
      { content: [{ type: 'audio', mimeType: 'audio/wav', data: '' }, text('a')] },
      'succeeded',
      [text(expect.stringMatching(/^\[a sound that cannot be shown: .*\]$/) as never), text('a')],
    ],
    [
      'the kind of a sound that claims another type',
      { content: [{ type: 'audio', mimeType: 'text/html', data: base64(wav) }] },
      'succeeded',
      [text('[a sound of an unknown type]')],
    ],
    [
      'its structure if it has no content',
      { content: [], structuredContent: { a: [1] } },
      'succeeded',
      [text('{"a":[1]}')],
    ],
    ['its content if it has both', { content: [text('a')], structuredContent: { a: 1 } }, 'succeeded', [text('a')]],
    ['an error, with its text', { isError: true, content: [text('no')] }, 'failed', [text('no')]],
    [
      'an error, with its structure',
      { isError: true, content: [], structuredContent: { e: 1 } },
      'failed',
      [text('{"e":1}')],
    ],
  ])('is %s', async (_, result, outcome, content) => {
    const { transport, begun } = serverByHand();
    const { tools, close } = await mcpTools({ s: { transport } });
    const { conversation, agent } = await bench({ tools, replies: [[call('c1', 'mcp__s__act')], 'done'] });
    const run = conversation.send('go');
    await begins(begun);
    begun[0]?.give(result);
    expect((await run.result).termination).toBe('NaturalEnd');
    const [entry] = conversation.log().flatMap((each) => (each.type === 'tool-result' ? [each] : []));
    expect(entry).toMatchObject({ outcome, content });
    await agent.close();
    await close();
  });

  it.each<[string, string[] | undefined, object]>([
    ['accepts it receives a sound', ['audio/wav'], { type: 'file', mediaType: 'audio/wav', data: base64(wav) }],
    [
      'does not accept it reads what was left out',
      ['image/*'],
      { type: 'text', text: expect.stringMatching(/audio\/wav.*this model takes no audio\/wav/) },
    ],
  ])('a model that %s', async (_, accepts, shown) => {
    const { transport, begun } = serverByHand();
    const { tools, close } = await mcpTools({ s: { transport } });
    const model = { ...scripted([[call('c1', 'mcp__s__act')], 'done']), ...(accepts && { accepts }) };
    const { conversation, agent } = await bench({ tools, model });
    const run = conversation.send('go');
    await begins(begun);
    begun[0]?.give({ content: [{ type: 'audio', mimeType: 'audio/wav', data: base64(wav) }] });
    expect((await run.result).termination).toBe('NaturalEnd');
    expect(model.calls[1]?.messages.at(-1)?.content).toEqual([shown]);
    await agent.close();
    await close();
  });

  it('it may arrive after the default time limit of the protocol: the agent has the limits', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { server, act, begun } = serverByHand();
    const settled = act('a');
    for (let turns = 0; turns < 50 && begun.length === 0; turns++) await flush();
    await vi.advanceTimersByTimeAsync(24 * 3_600_000);
    begun[0]?.answer('late');
    expect(await settled).toMatchObject({ kind: 'result' });
    await server.close();
  });

  it('it reports its progress with the message of the server, and nothing else', async () => {
    const { server, act, begun } = serverByHand();
    const progressValues: unknown[] = [];
    const settled = act('a', { progress: (update) => progressValues.push(update) });
    await begins(begun);
    const updates = [{ progress: 1 }, { progress: 2, total: 0 }, { progress: 3, total: 4, message: '' }];
    for (const update of updates) begun[0]?.tell(update);
    await expect.poll(() => progressValues, { interval: 1 }).toEqual(updates);
    begun[0]?.answer('done');
    await settled;
    await server.close();
  });
});

describe('a question', () => {
  it.each<[Omit<Decision, 'callId'>, object]>([
    [
      { action: 'answer', payload: { name: 'Ada' } },
      { action: 'accept', content: { name: 'Ada' } },
    ],
    [
      { action: 'answer', payload: 'yes' },
      { action: 'accept', content: {} },
    ],
    [
      { action: 'answer', payload: ['yes'] },
      { action: 'accept', content: {} },
    ],
    [
      { action: 'answer', payload: null },
      { action: 'accept', content: {} },
    ],
    [{ action: 'approve' }, { action: 'accept', content: {} }],
    [{ action: 'deny' }, { action: 'decline' }],
  ] as never)('a decision of a person by %j is answered %j', async (decision, expected) => {
    const { server, act, begun } = serverByHand();
    const first = act('a');
    await begins(begun);
    const answer = begun[0]?.ask('sure?');
    await first;
    const on = act('a', { decision: { callId: 'a', ...decision } as Decision });
    expect(await answer).toEqual(expected);
    begun[0]?.answer('done');
    await on;
    await server.close();
  });

  it('a question that would send the person to an address is cancelled, because nothing shows the address', async () => {
    const { server, act, begun } = serverByHand();
    const settled = act('a');
    await begins(begun);
    const url = { mode: 'url', elicitationId: '1', url: 'https://example.com/' };
    const answer = (await begun[0]?.ask('go there', url)) as { action?: string } | undefined;
    expect(answer?.action).not.toBe('accept');
    begun[0]?.answer('done');
    expect(await settled).toMatchObject({ kind: 'result' });
    await server.close();
  });

  it('a question whose call is cancelled while its answer waits is cancelled at the server', async () => {
    const { server, act, begun, cancelled } = serverByHand();
    const first = act('a');
    await begins(begun);
    void begun[0]?.ask('sure?');
    await first;
    const other = act('b');
    await begins(begun, 2);
    const abort = new AbortController();
    const on = act('a', { decision: { callId: 'a', action: 'approve' }, signal: abort.signal });
    const ended = on.then(
      () => 'result',
      () => 'ended',
    );
    abort.abort(new Error('not any more'));
    begun[1]?.answer('done');
    await other;
    expect(await ended).toBe('ended');
    expect(cancelled).toEqual([begun[0]?.id]);
    await server.close();
  });
});

describe('the connection to a server', () => {
  /** A server whose one tool returns the settings of its process. */
  const SERVER = `
const { PATH, OWN, SECRET_OF_THE_HOST } = process.env;
const say = { PATH: PATH !== undefined, OWN, SECRET_OF_THE_HOST, cwd: process.cwd(), args: process.argv.slice(1) };
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' },
  }),
  'tools/call': () => ({ content: [{ type: 'text', text: JSON.stringify(say) }] }),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }));
});`;

  it('a process receives the named directory, arguments and variables, and only the essential ones of this process', async () => {
    vi.stubEnv('SECRET_OF_THE_HOST', 'hidden');
    onTestFinished(() => void vi.unstubAllEnvs());
    const cwd = tmpdir();
    const server = new McpServer('s', {
      ...{ command: process.execPath, args: ['-e', SERVER, 'one'] },
      ...{ cwd, env: { OWN: 'mine' } },
    });
    const settled = await server.call(callOf('a'));
    await server.close();
    const [part] = settled.kind === 'result' ? (settled.result.content ?? []) : [];
    const processSettings = JSON.parse(part?.type === 'text' ? part.text : '{}') as object;
    expect(processSettings).toEqual({ PATH: true, OWN: 'mine', cwd, args: ['one'] });
  });

  it('an address receives the named headers', async () => {
    const seen: unknown[] = [];
    const web = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => void web.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void web.close());
    const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/mcp`;
    const made = mcpTools({ s: { url, headers: { authorization: 'Bearer it' } } });
    await expect(made).rejects.toMatchObject({ code: 'mcp' });
    expect(new Set(seen)).toEqual(new Set(['Bearer it']));
  });

  it('if one of several fails, the connected ones are released', async () => {
    const { transport, ends } = serverByHand();
    const closed: number[] = [];
    const counted = () => {
      const client = transport();
      const at = ends.length - 1;
      (ends[at] as { onclose?: () => void }).onclose = () => closed.push(at);
      return client;
    };
    let fail = (_: Error): void => undefined;
    const failing = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const made = mcpTools({ a: { transport: counted }, b: { transport: counted }, c: { transport: () => failing } });
    const outcome = made.catch((error: { code?: string }) => error.code);
    await begins(ends, 2);
    await flush();
    fail(new Error('not up'));
    expect(await outcome).toBe('mcp');
    expect(closed.sort()).toEqual([0, 1]);
  });

  it.each(['a server cannot be reached', 'a server does not list its tools'])(
    'if %s, the rejection comes after the others have closed, however long that takes',
    async (fault) => {
      const { transport } = serverByHand();
      const open = new Set<object>();
      const slow = () => {
        const client = transport();
        const close = client.close.bind(client);
        open.add(client);
        client.close = async () => {
          await flush();
          await close();
          open.delete(client);
        };
        return client;
      };
      const deafTo = serverByHand();
      const failing = () => {
        if (fault === 'a server cannot be reached') throw new Error('not up');
        const client = deafTo.transport();
        const send = client.send.bind(client);
        client.send = async (message, options) => {
          if ('method' in message && message.method === 'tools/list') throw new Error('no list');
          return send(message, options);
        };
        return client;
      };
      await expect(mcpTools({ a: { transport: slow }, b: { transport: failing } })).rejects.toThrow();
      expect(open.size).toBe(0);
    },
  );
});
