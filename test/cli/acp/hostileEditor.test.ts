/** Editors that break the protocol: their messages are refused with a code, and the session stays intact. */

import { join } from 'node:path';
import { ndJsonStream } from '@agentclientprotocol/sdk';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EditorAgent } from '../../../src/cli/acp/editorAgent.ts';
import { sessionPlace } from '../../../src/cli/sessions/sessionPlace.ts';
import { call, deaf, type Reply, scripted, t } from '../../support/scriptedReplies.ts';
import { agentMaker, begun, choose, temporaryRoot, textIn } from './acpClient.ts';

const deploys = (to: string, id = 'c1'): Reply => [call(id, 'Deploy', { to })];

interface Answered {
  id?: number | string | null;
  method?: string;
  params?: { options?: unknown };
  result?: { sessionId?: string; stopReason?: string };
  error?: { code: number };
}

/** Lines on a byte stream, without a client that keeps them well-formed. */
async function wire(replies: readonly Reply[]) {
  const root = await temporaryRoot();
  const ran: unknown[] = [];
  const [input, output] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  const place = await sessionPlace(`${root}/sessions`);
  const makeAgent = agentMaker(root, scripted(replies), ran);
  const editor = new EditorAgent({ version: '0', place, makeAgent });
  editor.app.connect(ndJsonStream(output.writable, input.readable));
  onTestFinished(() => editor.close());
  const received: Answered[] = [];
  void (async () => {
    let text = '';
    for await (const bytes of output.readable) {
      text += new TextDecoder().decode(bytes);
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      received.push(...lines.map((line) => JSON.parse(line) as Answered));
    }
  })();
  const writer = input.writable.getWriter();
  const line = (text: string) => writer.write(new TextEncoder().encode(`${text}\n`));
  const send = (message: object) => line(JSON.stringify({ jsonrpc: '2.0', ...message }));
  const answerTo = async (id: number | null): Promise<Answered> => {
    const find = () => received.find((each) => each.id === id && each.method === undefined);
    await expect.poll(find, { interval: 5 }).toBeDefined();
    return find() ?? {};
  };
  const request = (id: number, method: string, params: object) => send({ id, method, params });
  const begin = async (): Promise<string> => {
    await request(1, 'initialize', { protocolVersion: 1 });
    await answerTo(1);
    await request(2, 'session/new', { cwd: root, mcpServers: [] });
    return (await answerTo(2)).result?.sessionId ?? '';
  };
  return { root, ran, received, line, send, request, answerTo, begin };
}

const asks = (text: string, sessionId: string) => ({ sessionId, prompt: [{ type: 'text', text }] });

describe('a hostile editor', () => {
  test('malformed lines are answered by their codes, and the connection goes on', async () => {
    const { line, request, answerTo, begin, received } = await wire(['hi']);
    await line('{"jsonrpc": "2.0", "id": 7, "method": ');
    await line('[]');
    await line('"text"');
    await expect.poll(() => received.filter(({ id }) => id === null).length, { interval: 5 }).toBe(3);
    expect(received.map(({ error }) => error?.code)).toEqual([-32700, -32600, -32600]);
    const sessionId = await begin();
    await request(3, 'session/prompt', { sessionId, prompt: 'no list' });
    await request(4, 'session/prompt', { sessionId });
    await request(5, 'no/such/method', {});
    expect((await answerTo(3)).error?.code).toBe(-32602);
    expect((await answerTo(4)).error?.code).toBe(-32602);
    expect((await answerTo(5)).error?.code).toBe(-32601);
    await request(6, 'session/prompt', asks('hi', sessionId));
    expect((await answerTo(6)).result?.stopReason).toBe('end_turn');
  });

  test('nothing is done before initialize, and an unknown session is a resource that is not found', async () => {
    const { request, answerTo, begin, send } = await wire([]);
    await request(9, 'session/new', { cwd: '/', mcpServers: [] });
    expect((await answerTo(9)).error?.code).toBe(-32600);
    await begin();
    await request(10, 'session/prompt', asks('hi', 'nobody'));
    expect((await answerTo(10)).error?.code).toBe(-32002);
    await send({ method: 'session/cancel', params: { sessionId: 'nobody' } });
    await request(11, 'session/set_mode', { sessionId: 'nobody', modeId: 'plan' });
    expect((await answerTo(11)).error?.code).toBe(-32002);
  });

  test('a permission that is answered twice runs the call once', async () => {
    const { request, answerTo, begin, send, received, ran } = await wire([deploys('one'), 'done']);
    const sessionId = await begin();
    await request(3, 'session/prompt', asks('deploy', sessionId));
    const question = () => received.find(({ method }) => method === 'session/request_permission');
    await expect.poll(question, { interval: 5 }).toBeDefined();
    const id = question()?.id;
    const chosen = (optionId: string) => ({ id, result: { outcome: { outcome: 'selected', optionId } } });
    await send(chosen('once'));
    await send(chosen('reject'));
    await send(chosen('once'));
    expect((await answerTo(3)).result?.stopReason).toBe('end_turn');
    expect(ran).toEqual(['one']);
  });

  test('a malformed answer to a question runs nothing', async () => {
    const { request, answerTo, begin, send, received, ran } = await wire([deploys('one'), 'done']);
    const sessionId = await begin();
    await request(3, 'session/prompt', asks('deploy', sessionId));
    const question = () => received.find(({ method }) => method === 'session/request_permission');
    await expect.poll(question, { interval: 5 }).toBeDefined();
    await send({ id: question()?.id, result: { outcome: 'yes' } });
    await answerTo(3);
    expect(ran).toEqual([]);
  });

  test('a prompt during a prompt is refused, and the first one goes on', async () => {
    const { agent, sessionId, prompt, updates } = await begun([deploys('one'), 'done'], {
      answer: async (asked) => {
        const second = agent.request('session/prompt', {
          sessionId: asked.sessionId,
          prompt: [{ type: 'text', text: 'x' }],
        });
        await expect(second).rejects.toMatchObject({ code: -32600 });
        const load = agent.request('session/load', { sessionId, cwd: '/', mcpServers: [] });
        await expect(load).rejects.toMatchObject({ code: -32600 });
        return choose('once')();
      },
    });
    expect(await prompt('deploy')).toEqual({ stopReason: 'end_turn' });
    expect(textIn(updates)).toBe('done');
  });
});

describe('a cancel', () => {
  test('during a reply ends it as cancelled, also twice, and the next prompt is answered', async () => {
    const { agent, sessionId, prompt, updates } = await begun([deaf(t('Let me think')), 'fine']);
    const first = prompt('go');
    await expect.poll(() => textIn(updates), { interval: 5 }).toBe('Let me think');
    await agent.notify('session/cancel', { sessionId });
    await agent.notify('session/cancel', { sessionId });
    expect(await first).toEqual({ stopReason: 'cancelled' });
    await agent.notify('session/cancel', { sessionId });
    expect(await prompt('again')).toEqual({ stopReason: 'end_turn' });
  });

  test('directly after the prompt ends it, whatever has begun', async () => {
    const { agent, sessionId, prompt } = await begun([deaf(), deaf(), deaf(), 'fine']);
    for (const turns of [0, 1, 5]) {
      const prompted = prompt('go');
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      await agent.notify('session/cancel', { sessionId });
      expect(await prompted).toEqual({ stopReason: 'cancelled' });
    }
  });

  test('during a question ends it, and a late answer runs nothing', async () => {
    let answerLate: () => void = () => {};
    const { agent, sessionId, prompt, asked, ran } = await begun([deploys('one'), 'fine'], {
      answer: () =>
        new Promise((resolve) => {
          answerLate = () => resolve({ outcome: { outcome: 'selected', optionId: 'once' } });
        }),
    });
    const prompted = prompt('deploy');
    await expect.poll(() => asked.length, { interval: 5 }).toBe(1);
    await agent.notify('session/cancel', { sessionId });
    expect(await prompted).toEqual({ stopReason: 'cancelled' });
    answerLate();
    expect(await prompt('again')).toEqual({ stopReason: 'end_turn' });
    expect(ran).toEqual([]);
  });

  test('of the session by a close during a question ends it too, and the call still waits', async () => {
    const { agent, asked, prompt, ran, sessionId, root, makeAgent } = await begun([
      [call('c1', 'Deploy', { to: 'x' })],
    ]);
    const prompted = prompt('go');
    await expect.poll(() => asked.length).toBe(1);
    const { store } = await sessionPlace(join(root, 'sessions'));
    await expect.poll(async () => (await store.list())[0]?.status, { interval: 5 }).toBe('waiting');
    await agent.request('session/close', { sessionId });
    expect(await prompted).toEqual({ stopReason: 'cancelled' });
    expect(ran).toEqual([]);
    const made = await makeAgent(root);
    expect((await made.agent.open(sessionId)).pending).toMatchObject([{ callId: 'c1' }]);
    await made.close();
  });

  test('of the request itself ends it too', async () => {
    const { agent, sessionId, updates } = await begun([deaf(t('Let me think'))]);
    const controller = new AbortController();
    const params = { sessionId, prompt: [{ type: 'text' as const, text: 'go' }] };
    const prompted = agent.request('session/prompt', params, { cancellationSignal: controller.signal });
    await expect.poll(() => textIn(updates), { interval: 5 }).toBe('Let me think');
    controller.abort();
    expect(await prompted).toEqual({ stopReason: 'cancelled' });
  });
});
