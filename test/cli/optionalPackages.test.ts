/** The optional packages of the program: its behaviour with them and without. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modelFacts } from '../../src/cli/models/modelChoice.ts';
import { knownModel } from '../../src/models/prices.ts';
import { root } from '../docs/documents.ts';

describe('with the packages', () => {
  it('BED-12: prices and window come from the list, by the provider of the address, else by the name alone', async () => {
    expect(await modelFacts('gpt-4o')).toEqual(knownModel('gpt-4o'));
    expect(await modelFacts('gpt-4o', { baseURL: '' })).toEqual(knownModel('gpt-4o'));
    expect(await modelFacts('gpt-4o', { baseURL: 'http://127.0.0.1:1/v1' })).toEqual(knownModel('gpt-4o'));
    const listed = knownModel('claude-sonnet-4-5', { provider: 'anthropic' });
    expect(listed.contextWindow).toBeGreaterThan(100_000);
    expect(await modelFacts('anthropic/claude-sonnet-4-5', { baseURL: 'http://127.0.0.1:1/v1' })).toEqual(listed);
    expect(await modelFacts('claude-sonnet-4-5', { provider: 'anthropic' })).toEqual(listed);
    expect(await modelFacts('nobody-has-it')).toEqual({});
    expect(await modelFacts('nobody/has-it', { provider: 'openai' })).toEqual({});
  });
});

describe('without either package', () => {
  let place = '';
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'runchart-adapter-'));
    await build({
      stdin: {
        resolveDir: join(root, 'src'),
        contents: `
          export { modelFacts } from './cli/models/modelChoice.ts';
          export { openai } from './models/openai/index.ts';
          export { knownModel } from './models/prices.ts';
          export const messageOf = (act) => { try { act(); } catch (error) { return [error.code, error.message]; } };`,
      },
      outfile: join(place, 'program.mjs'),
      external: ['@pydantic/genai-prices', 'openai'],
      bundle: true,
      format: 'esm',
      platform: 'node',
      logLevel: 'silent',
    });
  });
  afterAll(() => rm(place, { recursive: true, force: true }));

  /** The value of the expression as JSON; `program` is the module under test. */
  async function printed(expression: string): Promise<unknown> {
    const url = pathToFileURL(join(place, 'program.mjs')).href;
    const code = `const program = await import(${JSON.stringify(url)}); console.log(JSON.stringify(${expression}))`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: place });
    return JSON.parse(stdout);
  }

  it('BED-12: a model has no facts of the list, and nothing fails', async () => {
    expect(await printed("await program.modelFacts('gpt-4o')")).toEqual({});
  });

  it.each([
    ["program.openai('gpt-4o', { apiKey: 'any' })", 'npm install openai'],
    ["program.knownModel('gpt-4o')", 'npm install @pydantic/genai-prices'],
  ])('%s throws an error with the command that installs the package', async (expression, command) => {
    const [code, message] = (await printed(`program.messageOf(() => ${expression})`)) as [string, string];
    expect([code, message.endsWith(command)]).toEqual(['configuration', true]);
  });
});
