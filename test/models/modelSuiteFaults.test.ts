/** Tests that the model suite finds faults: each model has one fault and is valid otherwise. */
import { describe, expect, it } from 'vitest';
import { type Model, ModelError, type ModelPart } from '../../src/models/model.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { modelSuite } from '../../src/testing/modelSuite/modelSuite.ts';
import { proves } from '../support/tier.ts';

type Change = (parts: AsyncIterable<ModelPart>, signal: AbortSignal) => AsyncIterable<ModelPart>;

/** The cases that fail with this change of each reply. */
async function failedWith(change: Change): Promise<string[]> {
  const cases: (readonly [string, () => Promise<void>])[] = [];
  let group = '';
  modelSuite(
    ({ baseURL }): Model => {
      const model = openai('suite', { apiKey: 'key-of-the-suite', baseURL });
      return {
        id: 'faulty',
        stream: (request, { signal, attempt }) => change(model.stream(request, { signal, attempt }), signal),
      };
    },
    {
      describe(name, body) {
        group = name;
        body();
      },
      test: (name, body) => cases.push([`${group} ${name}`, body]),
    },
  );
  const failed: string[] = [];
  for (const [name, body] of cases) await body().catch(() => failed.push(name));
  return failed;
}

const only = (keep: (part: ModelPart) => ModelPart | undefined): Change =>
  async function* (parts) {
    for await (const part of parts) {
      const kept = keep(part);
      if (kept !== undefined) yield kept;
    }
  };

/** The parts of the model, with a signal that is never aborted. */
const deaf: Change = (parts, signal) => ({
  [Symbol.asyncIterator]() {
    const stream = parts[Symbol.asyncIterator]();
    return {
      async next() {
        const next = await stream
          .next()
          .catch((error: unknown) => (signal.aborted ? undefined : Promise.reject(error)));
        return next ?? new Promise<never>(() => {});
      },
    };
  },
});

describe('the model suite', () => {
  it('finds no fault in a model that only forwards', async () => {
    expect(await failedWith((parts) => parts)).toEqual([]);
  });

  it.each<[string, Change, RegExp]>([
    [
      'drops the usage',
      only((part) => (part.type === 'finish' ? { type: 'finish', reason: part.reason } : part)),
      /token counts/,
    ],
    [
      'always finishes with stop',
      only((part) => (part.type === 'finish' ? { ...part, reason: 'stop' } : part)),
      /cut by its length/,
    ],
    ['drops reasoning', only((part) => (part.type === 'reasoning-delta' ? undefined : part)), /reasoning comes apart/],
    ['renames calls', only((part) => (part.type === 'tool-call' ? { ...part, callId: 'x' } : part)), /side by side/],
    [
      'ends well whatever happens',
      async function* (parts) {
        try {
          yield* parts;
        } catch {
          yield { type: 'finish', reason: 'stop' };
        }
      },
      /without a finish reason/,
    ],
    [
      'takes a connection that is cut for the end of a reply',
      async function* (parts) {
        try {
          yield* parts;
        } catch (error) {
          if (!(error instanceof ModelError) || error.code !== 'network') throw error;
          yield { type: 'finish', reason: 'stop' };
        }
      },
      /a connection that is cut/,
    ],
    [
      'tells every failure as final',
      async function* (parts) {
        try {
          yield* parts;
        } catch {
          throw new ModelError({ code: 'bad-request' });
        }
      },
      /status 429/,
    ],
  ])('notices a model that %s', async (_, change, named) => {
    expect(await failedWith(change)).toContainEqual(expect.stringMatching(named));
  });

  it('ends every case of a model that ignores its signal', async () => {
    expect((await failedWith(deaf)).length).toBeGreaterThanOrEqual(4);
  });

  it('ends every case of a model whose parts never end', async () => {
    const endless: Change = async function* () {
      for (;;) yield { type: 'text-delta', text: '' };
    };
    expect((await failedWith(endless)).length).toBeGreaterThan(20);
  });

  it.runIf(proves)('ends every case of a model that never answers', { timeout: 60_000 }, async () => {
    const silent: Change = () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) });
    expect((await failedWith(silent)).length).toBeGreaterThan(20);
  });
});
