/** A cancel while a real server streams ends the request at once, and no socket or timer remains. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getActiveResourcesInfo } from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { only, story } from '../support/agentBench.ts';

type Answer = (response: ServerResponse) => void;

/** A server that reports when a request arrives, and when its connection closes. */
async function serverThat(answer: Answer) {
  let closed = false;
  let seen = (): void => {};
  const asked = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const server = createServer((request, response) => {
    request.socket.once('close', () => {
      closed = true;
    });
    request.resume().once('end', () => {
      answer(response);
      seen();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const { port } = server.address() as AddressInfo;
  return { baseURL: `http://127.0.0.1:${port}/v1`, isClosed: () => closed, asked, end };
}

const streams: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const delta = { choices: [{ index: 0, delta: { content: 'Let me think' }, finish_reason: null }] };
  response.write(`data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', created: 1, ...delta })}\n\n`);
};

/** Waits until the condition is true; the time limit of the test ends an endless wait. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await wait(2);
}

describe('BED-5 INV-6 a cancel aborts the HTTP request', () => {
  let sockets: string[] = [];
  const resources = (): string[] => getActiveResourcesInfo().filter((name) => name.startsWith('TCP'));
  beforeEach(() => {
    sockets = resources();
  });
  afterEach(() => expect(resources()).toEqual(sockets));

  it.each([
    ['that does not answer yet', () => undefined],
    ['whose body hangs', streams],
  ] as [string, Answer][])('of a server %s', async (_, answer) => {
    const server = await serverThat(answer);
    const agent = createAgent({ model: openai('m', { baseURL: server.baseURL, apiKey: 'none' }) });
    const conversation = await agent.open('c');
    const texts: string[] = [];
    conversation.live$.subscribe((signal) => {
      if (signal.type === 'text-delta') texts.push(signal.text);
    });
    conversation.send('hi');
    await server.asked;
    if (answer === streams) await until(() => texts.length > 0);
    expect(server.isClosed()).toBe(false);
    await conversation.cancel();
    expect(conversation.status).toBe('idle');
    await until(server.isClosed);
    expect(only(conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
    expect(story(conversation.log())).not.toContain('agent-output Let me think');
    await agent.close();
    await server.end();
    await until(() => resources().length <= sockets.length);
  });
});
