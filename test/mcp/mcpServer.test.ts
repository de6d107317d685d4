/** Calls at an MCP server that follows a test: turns, questions, and released resources. */
import { describe, expect, it } from 'vitest';
import { McpServer } from '../../src/mcp/mcpServer.ts';
import { mcpTools } from '../../src/mcp/mcpTools.ts';
import { flush } from '../support/virtualClock.ts';
import { serverByHand } from './serverByHand.ts';

describe('calls at a server', () => {
  it('calls that may change something run one after the other, and read-only ones run at once', async () => {
    const { server, act, begun } = serverByHand();
    const all = [act('a'), act('b'), act('c', { readOnly: true })];
    await expect.poll(() => begun.length).toBe(2);
    await flush();
    expect(begun.length).toBe(2);
    for (const one of begun) one.answer('done');
    await expect.poll(() => begun.length).toBe(3);
    begun[2]?.answer('done');
    expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(['result', 'result', 'result']);
    await server.close();
  });

  it('a call that continues after a question waits until another one that may change something has ended', async () => {
    const { server, act, begun } = serverByHand();
    const asked = act('a');
    await expect.poll(() => begun.length).toBe(1);
    const answered = begun[0]?.ask('which?').then(() => 'answered');
    expect((await asked).kind).toBe('elicitation');
    const other = act('b');
    await expect.poll(() => begun.length).toBe(2);
    const goesOn = act('a', { decision: { callId: 'a', action: 'answer', payload: {} } });
    await flush();
    expect(await Promise.race([answered, flush().then(() => 'not yet')])).toBe('not yet');
    begun[1]?.answer('done');
    expect([(await other).kind, await answered]).toEqual(['result', 'answered']);
    begun[0]?.answer('done');
    expect((await goesOn).kind).toBe('result');
    await server.close();
  });

  it('a call that was cancelled while it waited for its turn never starts', async () => {
    const { server, act, begun } = serverByHand();
    const first = act('a');
    const abort = new AbortController();
    const second = act('b', { signal: abort.signal });
    await expect.poll(() => begun.length).toBe(1);
    abort.abort(new Error('not any more'));
    begun[0]?.answer('done');
    await first;
    await expect(second).rejects.toThrow('not any more');
    expect(begun.length).toBe(1);
    await server.close();
  });

  it('a call that was cancelled while its server reconnected is never sent', async () => {
    const { transport, begun } = serverByHand();
    let connect = (): void => undefined;
    const connecting = new Promise<void>((resolve) => {
      connect = resolve;
    });
    const server = new McpServer('s', { transport: () => connecting.then(transport) });
    const abort = new AbortController();
    const act = server.call({
      ...{ key: 'a', name: 'act', args: {}, readOnly: false, decision: undefined, progress: () => undefined },
      signal: abort.signal,
    });
    await flush();
    abort.abort(new Error('not any more'));
    connect();
    await expect(act).rejects.toThrow('not any more');
    expect(begun).toEqual([]);
    await server.close();
  });

  it('of two questions in one call a person receives the first, and the second is cancelled', async () => {
    const { server, act, begun } = serverByHand();
    const settled = act('a');
    await expect.poll(() => begun.length).toBe(1);
    const first = begun[0]?.ask('one?');
    expect(await begun[0]?.ask('two?')).toEqual({ action: 'cancel' });
    expect(await settled).toMatchObject({ kind: 'elicitation', elicitation: { message: 'one?' } });
    const on = act('a', { decision: { callId: 'a', action: 'answer', payload: { yes: true } } });
    expect(await first).toEqual({ action: 'accept', content: { yes: true } });
    begun[0]?.answer('done');
    expect(await on).toMatchObject({ kind: 'result' });
    await server.close();
  });

  it('a call whose server ends after the answer of a person fails with an unknown effect', async () => {
    const { server, act, begun, ends } = serverByHand();
    const settled = act('a');
    await expect.poll(() => begun.length).toBe(1);
    const answered = begun[0]?.ask('sure?');
    await settled;
    const on = act('a', { decision: { callId: 'a', action: 'approve' } });
    const failure = expect(on).rejects.toMatchObject({
      ...{ code: 'mcp', message: expect.stringMatching(/nobody knows whether the call had an effect/) },
    });
    expect(await answered).toEqual({ action: 'accept', content: {} });
    await ends[0]?.close();
    await failure;
    await server.close();
  });

  it('at most 64 wait for a person: the question of the one that waits longest is cancelled', async () => {
    const { server, act, begun } = serverByHand();
    const answers: unknown[] = [];
    for (let count = 1; count <= 65; count++) {
      const settled = act(`${count}`);
      await expect.poll(() => begun.length, { interval: 1 }).toBe(count);
      void begun
        .at(-1)
        ?.ask('?')
        .then((answer) => answers.push([count, answer]));
      await settled;
    }
    await flush();
    expect(answers).toEqual([[1, { action: 'cancel' }]]);
    await server.close();
  });

  it('calls that wait for a person are cancelled at the server when the connection is closed', async () => {
    const { server, act, begun, cancelled } = serverByHand();
    const settled = act('a');
    await expect.poll(() => begun.length).toBe(1);
    void begun[0]?.ask('?');
    await settled;
    await server.close();
    expect(cancelled).toEqual([begun[0]?.id]);
  });

  it('a call after the end of the server reconnects', async () => {
    const { server, act, begun, ends } = serverByHand();
    const first = act('a');
    await expect.poll(() => begun.length).toBe(1);
    await ends[0]?.close();
    await expect(first).rejects.toThrow();
    const second = act('b');
    await expect.poll(() => begun.length).toBe(2);
    begun[1]?.answer('again');
    expect(await second).toMatchObject({ kind: 'result' });
    expect(ends.length).toBe(2);
    await server.close();
  });

  it('of two tools with the same final name the model receives the first, and the other is reported', async () => {
    const { transport } = serverByHand(['a b', 'a_b']);
    const { tools, left, close } = await mcpTools({ s: { transport } });
    await close();
    expect(tools.map(({ name }) => name)).toEqual(['mcp__s__a_b']);
    expect(left).toMatchObject([{ server: 's', tool: 'a_b', why: expect.stringContaining('mcp__s__a_b') }]);
  });
});
