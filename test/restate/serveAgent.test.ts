/** The refusals of serveAgent() and restateAgent(), before anything listens. */
import { describe, expect, it } from 'vitest';
import { ConfigurationError, createAgent } from '../../src/index.ts';
import { restateAgent, type ServeOptions, serveAgent } from '../../src/restate/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';

const model = scriptedModel(['hello']);

describe('serveAgent', () => {
  it('refuses an agent that another process has', async () => {
    await expect(serveAgent(restateAgent({ ingress: 'http://127.0.0.1:1' }))).rejects.toThrow(ConfigurationError);
  });

  it.each([
    ['a store without functions', { store: {} }],
    ['a hub without functions', { hub: {} }],
    ['an unknown option', { stores: {} }],
    ['a name with a slash', { service: 'a/b' }],
    ['a port that does not exist', { port: 65_536 }],
    ['a key of another kind', { identityKeys: ['ssh-ed25519 AAAA'] }],
    ['a key that is no text', { identityKeys: [5] }],
  ])('refuses %s', async (_, options) => {
    await expect(serveAgent(createAgent({ model }), options as unknown as ServeOptions)).rejects.toThrow(
      ConfigurationError,
    );
  });

  it('an agent for clients refuses a store without functions', () => {
    expect(() => restateAgent({ ingress: 'http://127.0.0.1:1', store: {} as never })).toThrow(ConfigurationError);
  });

  it('an agent for clients keeps large messages in its store', async () => {
    const put: string[] = [];
    const contents = {
      put: async (name: string) => void put.push(name),
      get: async () => new Uint8Array(),
      delete: async () => undefined,
    };
    const { store } = restateAgent({ ingress: 'http://127.0.0.1:1', store: contents }).profile;
    const act = { type: 'send', actId: 'a', content: 'x'.repeat(100_000) };
    await expect(store.act?.('one', act)).rejects.toMatchObject({ code: 'unavailable' });
    expect(put).toHaveLength(1);
  });

  it('a message that the engine cannot take is refused before it is sent', async () => {
    const { store } = restateAgent({ ingress: 'http://127.0.0.1:1' }).profile;
    const act = { type: 'send', actId: 'a', content: 'x'.repeat(10_000_001) };
    await expect(store.act?.('one', act)).rejects.toMatchObject({ code: 'too_large' });
  });
});
