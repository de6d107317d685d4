/** The optional packages of the program: its behaviour with them and without. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modelFacts } from '../../src/cli/adapter.ts';
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
      entryPoints: [join(root, 'src/cli/adapter.ts')],
      outdir: place,
      outExtension: { '.js': '.mjs' },
      external: ['@pydantic/genai-prices', 'openai'],
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      logLevel: 'silent',
    });
  });
  afterAll(() => rm(place, { recursive: true, force: true }));

  /** The value of the expression as JSON; `adapter` is the module under test. */
  async function printed(expression: string): Promise<unknown> {
    const url = pathToFileURL(join(place, 'adapter.mjs')).href;
    const code = `const adapter = await import(${JSON.stringify(url)}); console.log(JSON.stringify(${expression}))`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: place });
    return JSON.parse(stdout);
  }

  it('BED-12: no cost is known, and nothing fails', async () => {
    expect(await printed("await adapter.modelFacts('gpt-4o')")).toEqual({});
  });

  it('the adapter names the package to install', async () => {
    expect(await printed('await adapter.loadAdapter().catch((error) => error.message)')).toContain(
      'npm install openai',
    );
  });
});
