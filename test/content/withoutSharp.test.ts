/** Tests a bundled app without sharp: a diagnostic reports the image, and the run continues. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { expect, it, onTestFinished } from 'vitest';
import { base64, dot, pngHeader } from '../support/samplePictures.ts';

const app = (large: string, small: string): string => `
  import { createAgent } from './src/index.ts';
  let shown = [];
  const model = {
    id: 'm',
    async *stream({ messages }) {
      shown = messages.at(-1).content;
      yield { type: 'text-delta', text: 'Ok.' };
      yield { type: 'finish', reason: 'stop' };
    },
  };
  const conversation = await createAgent({ model }).open();
  const image = (data) => ({ type: 'image', mediaType: 'image/png', data });
  const { termination } = await conversation.send([image('${large}'), image('${small}')]).result;
  const { code, detail } = conversation.log().find(({ type }) => type === 'diagnostic');
  console.log(JSON.stringify({ termination, shown: shown.map(({ type }) => type), code, message: detail.message }));
`;

it('without sharp, an image that needs it becomes a text for the model and a diagnostic with the remedy', async () => {
  const place = await mkdtemp(join(tmpdir(), 'runchart-sharp-'));
  onTestFinished(() => rm(place, { recursive: true, force: true }));
  const outfile = join(place, 'app.mjs');
  const resolveDir = resolve(import.meta.dirname, '../..');
  const contents = app(base64(pngHeader(3_000, 10)), base64(dot));
  const stdin = { contents, resolveDir, loader: 'ts' as const };
  await build({ stdin, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'silent' });
  const { PATH = '', SystemRoot = '' } = process.env;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [outfile], { env: { PATH, SystemRoot } });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual({
    termination: 'NaturalEnd',
    shown: ['text', 'image'],
    code: 'image_not_shown',
    message: expect.stringContaining('npm install sharp'),
  });
});
