/**
 * Connections to an MCP server that are closed while they connect, closed twice, or replaced. At most one is open, and
 * none after the close.
 */
import { InMemoryTransport } from '@modelcontextprotocol/client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { McpServer } from '../../src/mcp/mcpServer.ts';
import { flush } from '../support/virtualClock.ts';
import { callOf, serverByHand } from './serverByHand.ts';

describe('a server that is closed', () => {
  it.each(['before its transport is there', 'before it has answered'] as const)(
    'while a client connects, %s, no connection remains, and the close does not wait',
    async (moment) => {
      const open = { count: 0 };
      let goOn = (): void => undefined;
      const wait = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const transport = async () => {
        const [client, server] = InMemoryTransport.createLinkedPair();
        if (moment === 'before its transport is there') await wait;
        open.count += 1;
        server.onclose = () => {
          open.count -= 1;
        };
        // It answers nothing.
        void server.start();
        return client;
      };
      const server = new McpServer('s', { transport });
      const listed = server.tools().catch((error: { code: string }) => error.code);
      await flush();
      const closed = server.close();
      goOn();
      await closed;
      expect(await listed).toBe('mcp');
      await flush();
      expect(open.count).toBe(0);
    },
  );

  it('a call that waits for its turn ends and does not connect; a later call does, and the next close ends it', async () => {
    const { server, act, begun, ends } = serverByHand();
    for (const time of [1, 2]) {
      const ended = [act('a'), act('b'), act('c')].map((call) =>
        call.then(
          () => 'result',
          (error: { code?: string }) => error.code,
        ),
      );
      await expect.poll(() => begun.length).toBe(time);
      await Promise.all([server.close(), server.close()]);
      expect((await Promise.all(ended)).slice(1)).toEqual(['closed', 'closed']);
      await server.close();
      expect([begun.length, ends.length]).toEqual([time, time]);
    }
  });
});

describe('a connection that is replaced', () => {
  it('a second report of its end does not close the next one', async () => {
    const { transport, begun } = serverByHand();
    const clients: InMemoryTransport[] = [];
    const server = new McpServer('s', {
      transport() {
        const made = transport();
        clients.push(made);
        return made;
      },
    });
    const act = async (key: string): Promise<void> => {
      const { length } = begun;
      const done = server.call(callOf(key));
      await expect.poll(() => begun.length).toBe(length + 1);
      begun[length]?.answer(key);
      await done;
    };
    await act('a');
    const ended = clients[0]?.onclose;
    await clients[0]?.close();
    await act('b');
    ended?.();
    await act('c');
    expect(clients.length).toBe(2);
    await server.close();
  });

  it('is made at once after an answer, however many attempts failed before it', async () => {
    const { transport, begun, ends } = serverByHand();
    let refuses = false;
    const server = new McpServer('s', {
      transport() {
        if (refuses) throw new Error('away');
        return transport();
      },
    });
    onTestFinished(() => server.close());
    const pauses: number[] = [];
    const timer = setTimeout;
    const timers = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((act: () => void, ms = 0) => {
      const isPause = ms > 300 && ms <= 4_000;
      if (isPause) pauses.push(ms);
      return timer(act, isPause ? 0 : ms);
    }) as typeof setTimeout);
    onTestFinished(() => timers.mockRestore());
    const act = async (key: string): Promise<void> => {
      const { length } = begun;
      const done = server.call(callOf(key));
      await expect.poll(() => begun.length, { interval: 5 }).toBe(length + 1);
      begun[length]?.answer(key);
      await done;
    };
    await act('a');
    refuses = true;
    await ends.at(-1)?.close();
    for (const key of ['b', 'c', 'd']) await expect(server.call(callOf(key))).rejects.toThrow('cannot be reached');
    refuses = false;
    await act('e');
    const before = pauses.length;
    await ends.at(-1)?.close();
    await act('f');
    expect(pauses.slice(before)).toEqual([]);
  });
});
