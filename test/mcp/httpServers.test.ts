/** MCP servers over Streamable HTTP that stop, forget their sessions and want authorization: real connections on loopback. */
import { auth, type OAuthClientProvider } from '@modelcontextprotocol/client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import { McpConnection } from '../../src/mcp/mcpConnection.ts';
import { mcpTools } from '../../src/mcp/mcpTools.ts';
import { bench } from '../support/agentBench.ts';
import { call } from '../support/scriptedReplies.ts';
import { HttpServer } from './httpServer.ts';

const readOnly = { annotations: { readOnlyHint: true } };

async function started(tools: readonly object[] = [{ name: 'act' }]): Promise<HttpServer> {
  const server = new HttpServer();
  server.tools = tools;
  await server.start();
  onTestFinished(() => server.stop());
  return server;
}
async function connected(server: HttpServer, more: object = {}) {
  const mcp = await mcpTools({ s: { url: server.url, ...more } });
  onTestFinished(() => mcp.close());
  return mcp;
}
async function calling(server: HttpServer, names: readonly string[]) {
  const mcp = await connected(server);
  await expect.poll(() => server.streams).toBe(1);
  const replies = [...names.map((name, at) => [call(`c${at}`, `mcp__s__${name}`)]), 'done'];
  const made = await bench({ tools: mcp.tools, replies });
  onTestFinished(() => made.agent.close());
  return { ...made, mcp };
}
const textsIn = (log: readonly LogEntry[]): string[] =>
  log.flatMap((entry) => (entry.type === 'tool-result' ? [JSON.stringify(entry.content)] : []));

describe('a server that is lost', () => {
  it('a call that its forgotten session refused is made again in a new session', async () => {
    const server = await started();
    const { conversation } = await calling(server, ['act', 'act']);
    server.forgetSessions();
    await conversation.send('go').result;
    expect(textsIn(conversation.log())).toEqual([
      expect.stringContaining('act in session 2'),
      expect.stringContaining('act in session 2'),
    ]);
    expect(server.calls.length).toBe(2);
  });

  it.each([
    ['a call that may change something fails once, and nobody knows its effect', {}, 1],
    ['a call that only reads is made again', readOnly, 2],
  ])('if its stream breaks in a call, %s', async (_, more, count) => {
    const server = await started([{ name: 'wait', ...more }]);
    const { conversation } = await calling(server, ['wait']);
    const run = conversation.send('go');
    await expect.poll(() => server.calls.length).toBe(1);
    server.calls[0]?.cut();
    if (count === 2) {
      await expect.poll(() => server.calls.length).toBe(2);
      server.calls[1]?.answer();
    }
    await run.result;
    const expected = count === 2 ? 'wait in session 1' : 'nobody knows whether the call had an effect';
    expect(textsIn(conversation.log())).toEqual([expect.stringContaining(expected)]);
    expect(server.calls.length).toBe(count);
  });

  it('while it is away calls fail with its name, and once it is back the next call has a new session', async () => {
    const server = await started([{ name: 'act', ...readOnly }]);
    const mcp = await connected(server);
    const round = (callId: string) => [call(callId, 'mcp__s__act')];
    const { conversation, agent } = await bench({
      tools: mcp.tools,
      replies: [round('c1'), 'done', round('c2'), 'done'],
    });
    onTestFinished(() => agent.close());
    await server.stop();
    await conversation.send('go').result;
    await server.start();
    await conversation.send('go').result;
    const [away, back] = textsIn(conversation.log());
    expect(away).toContain('the MCP server s cannot be reached');
    expect(back).toContain('act in session 2');
  });

  it('its changed tools are offered, also after a new session', async () => {
    const server = await started();
    const mcp = await connected(server);
    await expect.poll(() => server.streams).toBe(1);
    server.tools = [{ name: 'act' }, { name: 'more' }];
    server.notify('notifications/tools/list_changed');
    await expect.poll(() => mcp.tools.map(({ name }) => name)).toEqual(['mcp__s__act', 'mcp__s__more']);
  });
});

describe('the end of a connection', () => {
  it('a close ends the session and every connection', async () => {
    const server = await started();
    const { conversation, agent, mcp } = await calling(server, ['act']);
    await conversation.send('go').result;
    await agent.close();
    await mcp.close();
    expect(server.requests.at(-1)).toBe('DELETE');
    await expect.poll(() => server.streams).toBe(0);
  });

  it('a close after the stream has broken, and while a call waits, leaves no timer', async () => {
    const server = await started([{ name: 'wait' }]);
    const { conversation, mcp } = await calling(server, ['wait']);
    const run = conversation.send('go');
    await expect.poll(() => server.calls.length).toBe(1);
    const timers = new Set<unknown>();
    const realTimer = setTimeout;
    const set = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((act: () => void, ms?: number) => {
      const timer = realTimer(() => {
        timers.delete(timer);
        act();
      }, ms);
      if ((ms ?? 0) >= 1_000) timers.add(timer);
      return timer;
    }) as typeof setTimeout);
    const clear = vi.spyOn(globalThis, 'clearTimeout').mockImplementation(((timer: NodeJS.Timeout) => {
      timers.delete(timer);
      timer?.close?.();
    }) as typeof clearTimeout);
    onTestFinished(() => {
      set.mockRestore();
      clear.mockRestore();
    });
    server.breakStreams();
    await expect.poll(() => timers.size).toBe(1);
    await mcp.close();
    await run.result;
    expect(timers.size).toBe(0);
  });
});

describe('authorization', () => {
  it('a provider of tokens is asked for another one when the server refuses the first', async () => {
    const server = await started();
    server.token = 'new';
    let token = 'old';
    const authProvider = {
      token: async () => token,
      onUnauthorized: async () => {
        token = 'new';
      },
    };
    const mcp = await connected(server, { authProvider });
    expect(mcp.tools.length).toBe(1);
  });

  it('without a token the error names that, and after the OAuth flow of the provider the server is connected', async () => {
    const server = await started();
    server.token = 'granted';
    const json = { 'content-type': 'application/json' };
    const { origin, url } = server;
    server.other = (path, body, response) => {
      const answers: { [path: string]: object } = {
        '/.well-known/oauth-protected-resource/mcp': { resource: url, authorization_servers: [origin] },
        '/.well-known/oauth-authorization-server': {
          ...{ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` },
          ...{ registration_endpoint: `${origin}/register`, response_types_supported: ['code'] },
          code_challenge_methods_supported: ['S256'],
        },
        '/register': { client_id: 'runchart', redirect_uris: ['http://127.0.0.1/back'] },
        '/token': body.includes('code=from-the-page') ? { access_token: 'granted', token_type: 'Bearer' } : {},
      };
      const answer = answers[path];
      response.writeHead(answer ? 200 : 404, json).end(JSON.stringify(answer ?? {}));
    };
    const kept: { [name: string]: unknown } = {};
    const pages: string[] = [];
    const authProvider = {
      redirectUrl: 'http://127.0.0.1/back',
      clientMetadata: { client_name: 'test', redirect_uris: ['http://127.0.0.1/back'] },
      clientInformation: () => kept.client,
      saveClientInformation: (client: unknown) => void Object.assign(kept, { client }),
      tokens: () => kept.tokens,
      saveTokens: (tokens: unknown) => void Object.assign(kept, { tokens }),
      saveDiscoveryState: (discovery: unknown) => void Object.assign(kept, { discovery }),
      discoveryState: () => kept.discovery,
      redirectToAuthorization: (page: URL) => void pages.push(page.href),
      saveCodeVerifier: (verifier: string) => void Object.assign(kept, { verifier }),
      codeVerifier: () => kept.verifier as string,
    } as unknown as OAuthClientProvider;
    await expect(mcpTools({ s: { url, authProvider } })).rejects.toMatchObject({
      code: 'mcp',
      message: expect.stringContaining('the MCP server s requires an authorization'),
    });
    expect(pages).toEqual([expect.stringContaining(`${origin}/authorize?response_type=code&client_id=runchart`)]);
    await auth(authProvider, { serverUrl: url, authorizationCode: 'from-the-page', iss: origin });
    const mcp = await connected(server, { authProvider });
    expect(mcp.tools.length).toBe(1);
  });
});

describe('an error of an address', () => {
  const TOKEN = 'tok-0123456789';
  const SECRETS = {
    'a header': `Basic ${TOKEN} realm-98765`,
    'the credentials of a header': TOKEN,
    'the end of a header': 'realm-98765',
    'a header of one word': 'key-abcdef',
    'the user of the address': 'ann-of-green',
    'the password of the address': 'pass/w:rd',
    'the escaped password of the address': encodeURIComponent('pass/w:rd'),
    'a parameter of the address': 'query-key-1',
  };
  it.each(Object.entries(SECRETS))('does not quote %s', async (_, secret) => {
    const server = {
      url: `http://ann-of-green:${encodeURIComponent('pass/w:rd')}@127.0.0.1:9/mcp?key=query-key-1`,
      headers: { authorization: SECRETS['a header'], 'x-key': SECRETS['a header of one word'] },
    };
    const connection = new McpConnection({
      ...{ name: 's', server, delayMs: 60_000 },
      ...{ elicit: () => ({ action: 'cancel' }), toolsChanged: () => undefined, ended: () => undefined },
    });
    onTestFinished(() => connection.close());
    for (const cause of [
      new Error(`refused ${secret}.`),
      secret,
      `"${secret}"`,
      new Error(JSON.stringify({ secret })),
    ]) {
      const { message } = connection.error('cannot be reached', cause);
      expect(message).toContain('[redacted]');
      expect(message).not.toContain(secret);
    }
  });
});
