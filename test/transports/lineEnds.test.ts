/** Line transports at their edges: lines of every length and form, and everything a second time or after the end. */
import { describe, expect, it } from 'vitest';
import { type Incoming, inProcessTransport, type Outgoing, stdioTransport } from '../../src/transports/index.ts';
import { flush } from '../support/virtualClock.ts';

const LINE_MAX = 8 * 1_048_576;
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A transport that reads these chunks, and its output. */
function over(chunks: readonly (string | Uint8Array)[], { isFull = false } = {}) {
  const written: string[] = [];
  const listeners = new Map<string, Set<() => void>>();
  const of = (event: string): Set<() => void> => {
    const own = listeners.get(event) ?? new Set();
    listeners.set(event, own);
    return own;
  };
  const output = {
    destroyed: false,
    write(text: string): boolean {
      written.push(text);
      return !isFull;
    },
    once: (event: string, listener: () => void) => of(event).add(listener),
    off: (event: string, listener: () => void) => of(event).delete(listener),
  };
  async function* input() {
    for (const chunk of chunks) yield typeof chunk === 'string' ? encode(chunk) : chunk;
  }
  const transport = stdioTransport({ input: input(), output });
  const fire = (event: string): void => {
    const own = [...of(event)];
    of(event).clear();
    for (const listener of own) listener();
  };
  return {
    transport,
    written,
    output,
    fire,
    listeners: () => [...listeners.values()].reduce((sum, { size }) => sum + size, 0),
  };
}

async function readAll(reading: AsyncIterable<unknown>): Promise<unknown[]> {
  const messages: unknown[] = [];
  for await (const message of reading) messages.push(message);
  return messages;
}
const codesIn = (written: readonly string[]) => written.map((line) => (JSON.parse(line) as { code: string }).code);
const error = (code: string): Outgoing => ({ type: 'error', code, message: 'm' });

describe('lines of an input', () => {
  it.each<[string, readonly string[], unknown[], string[]]>([
    ['one line', ['{"a":1}\n'], [{ a: 1 }], []],
    ['a last line without its end', ['{"a":1}'], [{ a: 1 }], []],
    ['two lines at once', ['{"a":1}\n{"a":2}\n'], [{ a: 1 }, { a: 2 }], []],
    ['a line in three pieces', ['{"a"', ':', '1}\n'], [{ a: 1 }], []],
    ['an end alone', ['{"a":1}', '\n', '{"a":2}\n'], [{ a: 1 }, { a: 2 }], []],
    ['blank lines', ['\n  \n\r\n{"a":1}\r\n\n'], [{ a: 1 }], []],
    ['nothing', [], [], []],
    ['an empty piece', ['', '{"a":1}\n', ''], [{ a: 1 }], []],
    ['a line that is no JSON', ['{"a":\n{"a":2}\n'], [{ a: 2 }], ['malformed']],
    ['two such lines', ['x\ny\n{"a":2}\n'], [{ a: 2 }], ['malformed', 'malformed']],
    ['any JSON', ['7\n"a"\nnull\n[]\n'], [7, 'a', null, []], []],
  ])('%s: %j is read as %j, and answered with %j', async (_, chunks, messages, codes) => {
    const { transport, written } = over(chunks);
    expect(await readAll(transport.read())).toEqual(messages);
    expect(codesIn(written)).toEqual(codes);
  });

  it('a character that is cut between two pieces arrives whole', async () => {
    const bytes = encode('"😀é"\n');
    for (let at = 1; at < bytes.length; at += 1)
      expect(await readAll(over([bytes.slice(0, at), bytes.slice(at)]).transport.read())).toEqual(['😀é']);
  });

  it.each([
    [LINE_MAX - 1, true],
    [LINE_MAX, true],
    [LINE_MAX + 1, false],
  ])('a line of %i bytes is read: %s, and so is the next one', async (length, isRead) => {
    const line = `"${'x'.repeat(length - 2)}"`;
    const { transport, written } = over([line.slice(0, 100), line.slice(100), '\n7\n']);
    const [first, ...rest] = await readAll(transport.read());
    expect(isRead ? [(first as string).length, rest] : [first, rest]).toEqual(isRead ? [length - 2, [7]] : [7, []]);
    expect(codesIn(written)).toEqual(isRead ? [] : ['too_large']);
  });
});

describe('a transport of lines', () => {
  it('writes one line a message, and nothing after its close or the end of its output', async () => {
    for (const end of ['close', 'destroyed', 'twice'] as const) {
      const { transport, written, output } = over(['1\n']);
      await transport.write(error('one'));
      if (end === 'destroyed') output.destroyed = true;
      else await transport.close();
      if (end === 'twice') await transport.close();
      await transport.write(error('two'));
      expect(written).toEqual([`${JSON.stringify(error('one'))}\n`]);
      if (end !== 'destroyed') expect(await readAll(transport.read())).toEqual([]);
    }
  });

  it('reads no further line after its close', async () => {
    const { transport } = over(['1\n2\n3\n']);
    const seen: unknown[] = [];
    for await (const message of transport.read()) {
      seen.push(message);
      if (message === (2 as never)) await transport.close();
    }
    expect(seen).toEqual([1, 2]);
  });

  it.each(['drain', 'close'])(
    'writes that wait go on after a %s in their order, or end, and leave no listener',
    async (event) => {
      const { transport, written, fire, listeners } = over([], { isFull: true });
      const settled: number[] = [];
      const writes = [1, 2, 3].map((count) => transport.write(error(`${count}`)).then(() => void settled.push(count)));
      await flush();
      expect([written.length, settled]).toEqual([1, []]);
      for (let times = 1; times <= 3; times += 1) {
        fire(event);
        await flush();
      }
      await Promise.all(writes);
      expect([codesIn(written), settled, listeners()]).toEqual([
        event === 'drain' ? ['1', '2', '3'] : ['1'],
        [1, 2, 3],
        0,
      ]);
    },
  );
});

describe('a transport within one process', () => {
  const message = { type: 'list' } as const;

  it('passes copies on in order, before and after the server begins to read', async () => {
    const { server, client } = inProcessTransport();
    const sent: Incoming = { type: 'user-message', content: [{ type: 'text', text: 'a' }] };
    const changing = structuredClone(sent) as unknown as { content: { text: string }[] };
    client.send(changing as never);
    client.send(message);
    for (const part of changing.content) part.text = 'changed';
    const reading = server.read()[Symbol.asyncIterator]();
    expect([(await reading.next()).value, (await reading.next()).value]).toEqual([sent, message]);
    const next = reading.next();
    client.send(sent);
    expect((await next).value).toEqual(sent);
  });

  it('gives every subscriber all messages as copies, and ends them with its close', async () => {
    const { server, client } = inProcessTransport();
    const first: Outgoing[] = [];
    let ends = 0;
    const complete = (): void => {
      ends += 1;
    };
    const own = error('one') as { code: string } & Outgoing;
    client.messages$.subscribe({ next: (each) => void first.push(each), complete });
    await server.write(own);
    own.code = 'changed';
    const late: Outgoing[] = [];
    client.messages$.subscribe({ next: (each) => void late.push(each), complete });
    expect([first, late]).toEqual([[error('one')], [error('one')]]);
    await server.close();
    await server.close();
    await server.write(error('two'));
    expect([first.length, late.length, ends]).toEqual([1, 1, 2]);
  });

  it('the messages of a client from before its close are read, and none after a close of the server', async () => {
    for (const side of ['client', 'server'] as const) {
      const { server, client } = inProcessTransport();
      client.send(message);
      client.send(message);
      const reading = server.read()[Symbol.asyncIterator]();
      await reading.next();
      await (side === 'server' ? server.close() : client.close());
      client.send(message);
      const rest = [await reading.next(), await reading.next()].map(({ done }) => done);
      expect([side, rest]).toEqual([side, side === 'client' ? [false, true] : [true, true]]);
    }
  });

  it.each(['server', 'client'] as const)(
    'a close by the %s ends a read that waits, and every later one',
    async (side) => {
      const { server, client } = inProcessTransport();
      const waiting = readAll(server.read());
      await flush();
      await (side === 'server' ? server.close() : client.close());
      client.send(message);
      expect([await waiting, await readAll(server.read())]).toEqual([[], []]);
    },
  );
});
