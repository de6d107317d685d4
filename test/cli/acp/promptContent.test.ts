/** A prompt of an editor as content: every kind of block, the limits of attachments, and names that could mislead. */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ContentBlock } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { promptContent } from '../../../src/cli/acp/promptContent.ts';
import { temporaryRoot } from './acpClient.ts';

const uriOf = (path: string): string => pathToFileURL(path).href;
const link = (path: string): ContentBlock => ({ type: 'resource_link', name: 'n', uri: uriOf(path) });
const embedded = (uri: string, fields: object): ContentBlock =>
  ({ type: 'resource', resource: { uri, ...fields } }) as ContentBlock;
const textsOf = (parts: readonly object[]): string[] =>
  parts.flatMap((part) => ('text' in part ? [part.text as string] : []));

test('a file is attached once, however often it is linked, and every link is named', async () => {
  const cwd = await temporaryRoot();
  await writeFile(join(cwd, 'a.txt'), 'inside');
  const parts = await promptContent(
    [link(join(cwd, 'a.txt')), { type: 'text', text: ' ' }, link(join(cwd, 'a.txt'))],
    cwd,
  );
  expect(textsOf(parts)).toEqual(['@a.txt @a.txt', '[attached a.txt, 1 line]\ninside']);
});

test('ten linked files are attached, and an eleventh is only named', async () => {
  const cwd = await temporaryRoot();
  const names = Array.from({ length: 12 }, (_, index) => `f${index}.txt`);
  for (const name of names) await writeFile(join(cwd, name), name);
  const [text, ...attached] = textsOf(
    await promptContent(
      names.map((name) => link(join(cwd, name))),
      cwd,
    ),
  );
  expect(text).toBe(names.map((name) => `@${name}`).join(''));
  expect(attached.map((each) => each.split('\n')[1])).toEqual(names.slice(0, 10));
});

test('links to places that are not attached do not count', async () => {
  const cwd = await temporaryRoot();
  await writeFile(join(cwd, 'a.txt'), 'inside');
  const others = Array.from({ length: 5 }, (_, index) => [link(`/out${index}`), link(join(cwd, `gone${index}`))]);
  const [, attached] = textsOf(await promptContent([...others.flat(), link(join(cwd, 'a.txt'))], cwd));
  expect(attached).toBe('[attached a.txt, 1 line]\ninside');
});

test('only what lies in the directory is read, also through a link and beside a directory of a similar name', async () => {
  const root = await temporaryRoot();
  const cwd = join(root, 'work');
  await mkdir(cwd);
  await mkdir(join(root, 'work2'));
  await writeFile(join(root, 'work2', 'out.txt'), 'OUTSIDE');
  await symlink(join(root, 'work2', 'out.txt'), join(cwd, 'link.txt'));
  const out = join(root, 'work2', 'out.txt');
  for (const path of [out, join(cwd, 'link.txt'), join(cwd, '..', 'work2', 'out.txt')])
    expect(textsOf(await promptContent([link(path)], cwd))).toEqual([`@${out}`]);
  expect(textsOf(await promptContent([link(join(cwd, 'missing.txt'))], cwd))).toEqual(['@missing.txt']);
  expect(textsOf(await promptContent([{ type: 'resource_link', name: 'n', uri: 'https://h/a' }], cwd))).toEqual([
    '[n](https://h/a)',
  ]);
});

test('embedded text is cut at 100,000 characters, and the cut is named', async () => {
  const cwd = await temporaryRoot();
  const shown = async (length: number) =>
    textsOf(await promptContent([embedded(uriOf(join(cwd, 'a')), { text: 'x'.repeat(length) })], cwd))[1];
  expect(await shown(100_000)).toBe(`[attached a]\n${'x'.repeat(100_000)}`);
  expect(await shown(100_001)).toBe(`[attached a, the first 100000 characters]\n${'x'.repeat(100_000)}`);
});

test('a cut leaves no half of a character, neither in a text nor in a name', async () => {
  const cwd = await temporaryRoot();
  const text = `${'x'.repeat(99_999)}😀`;
  const [, shown] = textsOf(await promptContent([embedded(uriOf(join(cwd, 'a')), { text })], cwd));
  expect(shown).toBe(`[attached a, the first 99999 characters]\n${'x'.repeat(99_999)}`);
  const name = `x:😀${'y'.repeat(254)}`;
  const [, , file] = await promptContent([embedded(name, { blob: 'aGk=' })], cwd);
  expect(file).toMatchObject({ name: 'y'.repeat(254) });
});

test('embedded bytes are an image by their type, else a file with the end of its name', async () => {
  const cwd = await temporaryRoot();
  const blob = 'aGk=';
  const image = await promptContent([embedded('untitled:a', { blob, mimeType: 'image/png' })], cwd);
  expect(image.slice(1)).toEqual([
    { type: 'text', text: '[attached untitled:a, image/png]' },
    { type: 'image', mediaType: 'image/png', data: blob },
  ]);
  for (const mimeType of ['imagery/png', 'application/pdf', undefined]) {
    const [, label, file] = await promptContent([embedded('untitled:a', { blob, mimeType })], cwd);
    const mediaType = mimeType ?? 'application/octet-stream';
    expect(label).toEqual({ type: 'text', text: `[attached untitled:a, ${mediaType}]` });
    expect(file).toEqual({ type: 'file', mediaType, name: 'untitled:a', data: blob });
  }
  const long = `untitled:${'d/'.repeat(300)}end.bin`;
  const [, , file] = await promptContent([embedded(long, { blob })], cwd);
  expect(file).toMatchObject({ name: long.slice(-255) });
});

test('a name with line ends or marks of direction cannot pretend to be another attachment', async () => {
  const cwd = await temporaryRoot();
  const [, text] = textsOf(await promptContent([embedded('x:a]\n[attached b\u202e', { text: 'hi' })], cwd));
  expect(text).toBe('[attached x:a]\\n[attached b\\u202e]\nhi');
});

test('an image is passed on, and a kind that the agent does not take is refused by its name', async () => {
  const cwd = await temporaryRoot();
  const image = { type: 'image', mimeType: 'image/png', data: 'aGk=' } as const;
  expect(await promptContent([{ type: 'text', text: 'a' }, image, { type: 'text', text: 'b' }], cwd)).toEqual([
    { type: 'text', text: 'ab' },
    { type: 'image', mediaType: 'image/png', data: 'aGk=' },
  ]);
  const audio = { type: 'audio', mimeType: 'audio/wav', data: 'aGk=' } as const;
  await expect(promptContent([audio], cwd)).rejects.toMatchObject({
    code: -32_602,
    message: expect.stringContaining('audio'),
  });
});
