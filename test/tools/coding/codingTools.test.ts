import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { groupName } from '../../../src/projector/cycles.ts';
import { call, toolNamed } from './codingBench.ts';

const sample = fileURLToPath(new URL('../../../docs/examples/sample', import.meta.url));

describe('codingTools', () => {
  it('TRC-13 read tools are read-only and repeatable, and belong to the read group', () => {
    for (const name of ['Read', 'Ls', 'Glob', 'Grep']) {
      expect(toolNamed(name)).toMatchObject({ name, readOnly: true, idempotent: true, group: 'read-group' });
    }
  });

  it('their arguments have the published names', () => {
    const shapeOf = (name: string) => {
      const schema = z.toJSONSchema(toolNamed(name).parameters as unknown as z.ZodType, { io: 'input' });
      return [Object.keys(schema.properties ?? {}), schema.required ?? []];
    };
    expect(shapeOf('Read')).toEqual([['file_path', 'offset', 'limit'], ['file_path']]);
    expect(shapeOf('Ls')).toEqual([['path'], []]);
    expect(shapeOf('Glob')).toEqual([['pattern', 'path'], ['pattern']]);
    expect(shapeOf('Grep')).toEqual([['pattern', 'path', 'include'], ['pattern']]);
    expect(shapeOf('Bash')).toEqual([['command', 'timeoutMs'], ['command']]);
  });

  it('H-063 a tool receives the arguments of its schema only', async () => {
    const args: object = JSON.parse('{"path":".","__proto__":{"admin":true},"more":1}');
    expect(await toolNamed('Ls').parameters['~standard'].validate(args)).toEqual({ value: { path: '.' } });
  });

  it('Bash may write, is not repeatable, has no approval of its own and belongs to the bash group', () => {
    const { name, group, readOnly, idempotent, needsApproval } = toolNamed('Bash');
    expect([name, group]).toEqual(['Bash', 'bash-group']);
    expect([readOnly, idempotent, needsApproval]).toEqual([undefined, undefined, undefined]);
    expect(groupName('BASH', undefined, undefined)).toBe('bash-group');
  });

  it('they read the sample project of the documentation', async () => {
    expect((await call(sample, 'Ls', {})).text.split('\n')).toEqual((await readdir(sample)).sort());
    expect((await call(sample, 'Read', { file_path: 'main.go', limit: 1 })).text).toMatch(/^ {2}1 \| package main\n/);
    expect((await call(sample, 'Glob', { pattern: '**/*.go' })).text).toBe('main.go');
    expect((await call(sample, 'Grep', { pattern: '^func main' })).text).toMatch(/^main\.go:\d+: func main\(\) \{$/);
  });
});
