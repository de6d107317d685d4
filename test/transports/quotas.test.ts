/** The limits of a handler's simultaneous work. Invariant: a refused request is not counted, and neither is one that has ended. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { agUiHandler, createHandlers, type HandlerOptions, uiMessageHandler } from '../../src/transports/index.ts';
import { QuotaRefusal, Quotas } from '../../src/transports/quotas.ts';
import { deaf, scripted, t } from '../support/scriptedReplies.ts';
import { volume } from '../support/tier.ts';
import { flush } from '../support/virtualClock.ts';

const refused = (act: () => unknown): QuotaRefusal | undefined => {
  try {
    act();
  } catch (error) {
    if (error instanceof QuotaRefusal) return error;
    throw error;
  }
  return undefined;
};

describe('counts', () => {
  it('any order of beginnings and ends keeps every limit, and leaves nothing in the end', () => {
    const act = fc.record({ kind: fc.constantFrom('request', 'bytes', 'client', 'end'), on: fc.nat(2), n: fc.nat(30) });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 80 }), (acts) => {
        const limits = { requests: 3, bodiesBytes: 50, clients: 4, clientsPerConversation: 2 };
        const quotas = new Quotas(limits, () => 0);
        const requests: { bytes: number; add(bytes: number): void; end(): void }[] = [];
        const clients: { of: number; end(): void }[] = [];
        for (const { kind, on, n } of acts) {
          if (kind === 'request') {
            const isFull = requests.length >= limits.requests;
            expect(refused(() => requests.push(requestOf(quotas))) !== undefined).toBe(isFull);
          } else if (kind === 'bytes') {
            const request = requests[n % requests.length];
            const held = requests.reduce((sum, { bytes }) => sum + bytes, 0);
            if (request) expect(refused(() => request.add(n)) !== undefined).toBe(held + n > limits.bodiesBytes);
          } else if (kind === 'client') {
            const own = clients.filter((client) => client.of === on).length;
            const isFull = own >= limits.clientsPerConversation || clients.length >= limits.clients;
            const begin = () => clients.push({ of: on, end: quotas.beginClient(`${on}`) });
            expect(refused(begin) !== undefined).toBe(isFull);
          } else {
            for (const ended of [...requests.splice(0, n % 2), ...clients.splice(0, n % 3)]) {
              ended.end();
              ended.end();
            }
          }
        }
        for (const each of [...requests, ...clients]) each.end();
        const last = quotas.beginRequest();
        last.addBytes(limits.bodiesBytes);
        for (const id of ['0', '0', '1', '1']) quotas.beginClient(id);
      }),
      { numRuns: volume.events },
    );
  });

  it('a request and a reader count out once, however often they end, and an end releases only its own bytes', () => {
    const quotas = new Quotas({ requests: 2, bodiesBytes: 10, clients: 2, clientsPerConversation: 1 }, () => 0);
    const [first, second] = [quotas.beginRequest(), quotas.beginRequest()];
    first.addBytes(3);
    first.addBytes(3);
    second.addBytes(4);
    for (let time = 1; time <= 3; time += 1) first.end();
    const third = quotas.beginRequest();
    expect(refused(() => quotas.beginRequest())).toMatchObject({ status: 503, retryAfterS: 1 });
    third.addBytes(6);
    expect(refused(() => third.addBytes(1))).toMatchObject({ status: 503, retryAfterS: 1 });
    const [leave, leaveOther] = [quotas.beginClient('a'), quotas.beginClient('b')];
    for (let time = 1; time <= 3; time += 1) leave();
    quotas.beginClient('a');
    expect(refused(() => quotas.beginClient('c'))).toMatchObject({ status: 503, retryAfterS: 5 });
    expect(refused(() => quotas.beginClient('b'))).toMatchObject({ status: 429, retryAfterS: 5 });
    leaveOther();
    quotas.beginClient('b');
  });

  it('creations are counted in each minute, and the answer has the time until the next', () => {
    let now = 0;
    const quotas = new Quotas({ creationsPerMinute: 2 }, () => now);
    quotas.beginCreation();
    now = 20_000;
    const takeBack = quotas.beginCreation();
    now = 30_500;
    expect(refused(() => quotas.beginCreation())).toMatchObject({ status: 429, retryAfterS: 30, code: 'limit' });
    takeBack();
    expect(refused(() => quotas.beginCreation())).toBeUndefined();
    now = 59_999;
    expect(refused(() => quotas.beginCreation())).toMatchObject({ retryAfterS: 1 });
    now = 60_000;
    expect(refused(() => quotas.beginCreation())).toBeUndefined();
  });

  it('creations of a minute count for at most a minute after a clock was set back', () => {
    let now = 3_600_000;
    const quotas = new Quotas({ creationsPerMinute: 2 }, () => now);
    quotas.beginCreation();
    now += 10_000;
    const takeBack = quotas.beginCreation();
    now = 0;
    expect(refused(() => quotas.beginCreation())).toMatchObject({ status: 429, retryAfterS: 60 });
    takeBack();
    quotas.beginCreation();
    expect(refused(() => quotas.beginCreation())).toMatchObject({ status: 429, retryAfterS: 60 });
    now = 60_000;
    quotas.beginCreation();
    quotas.beginCreation();
    expect(refused(() => quotas.beginCreation())).toMatchObject({ status: 429, retryAfterS: 60 });
  });
});

function requestOf(quotas: Quotas) {
  const request = quotas.beginRequest();
  const counted = {
    bytes: 0,
    add(bytes: number) {
      request.addBytes(bytes);
      counted.bytes += bytes;
    },
    end: () => request.end(),
  };
  return counted;
}

type Handler = (request: Request) => Promise<Response>;
const post = (path: string, body: unknown): Request =>
  new Request(`http://h${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    ...(body instanceof ReadableStream ? { body, duplex: 'half' } : { body: JSON.stringify(body) }),
  } as RequestInit);
const halfBody = (): ReadableStream<Uint8Array> =>
  new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(600).fill(32)) });
const chat = (id: string, n = 1) => ({
  id,
  messages: [{ id: `u${n}`, role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
});
const thread = (id: string, n = 1) => ({ threadId: id, messages: [{ id: `u${n}`, role: 'user', content: 'hi' }] });

function made(make: typeof createHandlers | typeof uiMessageHandler, limits: HandlerOptions['limits']): Handler {
  const agent = createAgent({ model: scripted(Array.from({ length: 9 }, () => deaf(t('a')))) });
  onTestFinished(() => agent.close());
  return make(agent, { authorize: () => true, ...(limits && { limits }) });
}

describe.each([
  ['createHandlers', createHandlers, (id: string) => post('/conversations', { id }), '/conversations'],
  ['uiMessageHandler', uiMessageHandler, (id: string) => post('/', chat(id)), '/'],
  ['agUiHandler', agUiHandler, (id: string) => post('/', thread(id)), '/'],
] as const)('%s', (name, make, creation, path) => {
  const status = async (response: Promise<Response>) => {
    const { status, headers } = await response;
    return [status, headers.get('retry-after')];
  };

  it('refuses creations beyond the limit of a minute with 429', async () => {
    const handle = made(make, { creationsPerMinute: 2 });
    expect((await handle(creation('a'))).ok).toBe(true);
    expect((await handle(creation('b'))).ok).toBe(true);
    expect(await status(handle(creation('c')))).toEqual([429, '60']);
  });

  it('refuses bodies that together hold more than the limit with 503, and holds none of them', async () => {
    const handle = made(make, { bodiesBytes: 1_000 });
    void handle(post(path, halfBody()));
    await flush();
    expect(await status(handle(post(path, halfBody())))).toEqual([503, '1']);
    expect((await handle(creation('a'))).ok).toBe(true);
  });

  it('refuses requests beyond the limit with 503', async () => {
    const handle = made(make, { requests: 2 });
    void handle(post(path, halfBody()));
    void handle(post(path, halfBody()));
    await flush();
    expect(await status(handle(creation('a')))).toEqual([503, '1']);
  });

  it('refuses clients beyond the limits, and accepts one when another has left', async () => {
    const handle = made(make, { clients: 2, clientsPerConversation: 1 });
    const ask = async (id: string): Promise<Response> => {
      if (name !== 'createHandlers') return handle(creation(id));
      await handle(creation(id));
      return handle(new Request(`http://h/conversations/${id}/events`));
    };
    const first = await ask('a');
    expect(first.status).toBe(200);
    expect(await status(ask('a'))).toEqual([429, '5']);
    expect((await ask('b')).status).toBe(200);
    expect(await status(ask('c'))).toEqual([503, '5']);
    await first.body?.cancel();
    expect((await ask('c')).status).toBe(200);
  });
});

it('an impossible limit is a ConfigurationError', () => {
  expect(() => made(createHandlers, { clients: 0 })).toThrow(/clients/);
  expect(() => made(createHandlers, { unknown: 1 } as never)).toThrow(/unknown/);
});
